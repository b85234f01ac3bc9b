"""Regular expressions that a user gives."""

import re
import warnings
from typing import AnyStr


def compile_regex(text: AnyStr) -> "re.Pattern[AnyStr]":
    """Compile a regular expression, without Python's warnings about syntax of its future versions.

    Raises:
        re.error: The text is not a valid regular expression.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return re.compile(text)
