"""Names of tests are short enough to be read in a report."""

import re
from pathlib import Path

_NAME = re.compile(r"\bdef (test_\w{46,})")


def test_a_name_has_at_most_50_characters() -> None:
    texts = (path.read_text() for path in Path(__file__).parent.rglob("test_*.py"))
    assert [name for text in texts for name in _NAME.findall(text)] == []
