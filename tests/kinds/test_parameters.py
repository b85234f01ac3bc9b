"""What each option and argument takes: its default, where its range ends, and what an error says.

`pytest --inline-snapshot=fix tests/kinds/test_parameters.py` writes them anew.
"""

import re
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import external_file

from rwq_cli.cli.options import COMMON_NAMES
from rwq_cli.core.errors import RwqError
from tests.verbs import COMMANDS

# By the metavar: the ends of each range, and what is beside them.
PROBES = {
    "DUR": ("", "0", "0.5", "1ms", "99ms", "100ms", "1h30m", "30 s", "-1", "x", "200y", ">1m"),
    "N": ("", "0", "1", "2", "01", "-1", "0.5", "9" * 20, ">=1", "=2", "<x"),
    "N/s": ("", "0", "0/s", "0.5", "3/m", "1/d", "1/y"),
    "NAME=RANGE": ("", "waiting", "waiting=1", "waiting=@5:", "age=1m", "buried=-1", "x=1"),
    "HOST:PORT": ("", "1", ":0", "h:65535", "h:65536", "h:x", "[::1]:1", "::1:1"),
    "RULE": ("", "uuid", "line", "field:", "field:a"),
    "TIME": ("", "8:00", "08:00", "2020-01-01T00:00Z", "2020-01-01", "@0"),
    "EXPR": ("", "1=", "a=1", ".a!=1", "a.b~^x", "!a", "a>x"),
}
OTHERS = ("", "0", "a*", "[", "(", "buried", "ghost", "ghost,x")


@pytest.mark.parametrize("path", ["common", *COMMANDS])
def test_each_option_takes_what_it_took(path: str) -> None:
    parameters = [
        parameter
        for parameter in COMMANDS["ls" if path == "common" else path].command.params
        if (parameter.name in COMMON_NAMES) is (path == "common")
    ]
    text = "".join(map(_sheet, parameters))
    file = Path(__file__).parent / "parameters" / f"{path.replace(' ', '-')}.txt"
    assert text == external_file(str(file))


def _sheet(parameter: Any) -> str:
    """A parameter, and what becomes of the probes, in which `~` stands for the probe."""
    names = " ".join((*parameter.opts, *parameter.secondary_opts, parameter.metavar or ""))
    kinds = "several, " * parameter.multiple + "required, " * parameter.required
    choices = ", ".join(getattr(parameter.type, "choices", ()))
    parses, probes = hasattr(parameter.type, "func"), dict[str, list[str]]()
    for probe in PROBES.get(parameter.metavar, OTHERS) if parses else ():
        try:
            value = _repr(parameter.type.convert(probe, parameter, None))
        except RwqError as error:
            value = f"! {error}; {error.hint}"
        probes.setdefault(value.replace(repr(probe), "~"), []).append(probe or "''")
    lines = [f"  {value} <- {'  '.join(probes[value])}\n" for value in probes]
    return f"{names}: {kinds}default {_repr(parameter.default)} {choices}\n{''.join(lines)}"


def _repr(value: object) -> str:
    return re.sub(r"<(?:function|built-in) .+? at \w+>", "function", repr(value))
