"""What a command calls below the command line, and with which arguments."""

import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import rwq_cli
from rwq_cli.cli.command import RwqCommand

_ROOT = str(Path(rwq_cli.__file__).parent) + "/"
_BELOW = ("core", "work", "service", "undo", "contexts", "input", "local")
_PLAIN = (str, bytes, int, float, type(None))
_DEPTH_MAX, _WIDTH_MAX = 4, 20
# A function, an argument, and its value as text.
Call = tuple[str, str, str]


def text_of(value: object, depth: int = 0) -> str:
    """A value without what differs from run to run: objects of other kinds are their types."""
    if isinstance(value, _PLAIN):
        return repr(value)
    if callable(value):
        return str(getattr(value, "__qualname__", type(value).__qualname__))
    if depth == _DEPTH_MAX:
        return "..."
    fields: Any = getattr(value, "__dataclass_fields__", None)
    if isinstance(value, Mapping):
        fields = value
    elif fields is not None:
        fields = {name: getattr(value, name, None) for name in fields}
    elif isinstance(value, tuple | list | set | frozenset):
        words = [text_of(entry, depth + 1) for entry in list(value)[:_WIDTH_MAX]]
        return f"({', '.join(words if isinstance(value, tuple | list) else sorted(words))})"
    else:
        return type(value).__qualname__
    return ", ".join(f"{name}={text_of(entry, depth + 1)}" for name, entry in [*fields.items()])


@contextmanager
def spying() -> Iterator[set[Call]]:
    """Collect the calls of what runs in the block, in any thread, once its options are parsed."""
    calls = set[Call]()
    invoke = RwqCommand.invoke.__code__
    is_below: dict[str, bool] = {}

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call":
            return
        if code is invoke:
            calls.clear()
        file = code.co_filename
        if file not in is_below:
            inside = file.removeprefix(_ROOT)
            is_below[file] = inside != file and inside.split("/")[0] in _BELOW
        if is_below[file]:
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            calls.update((code.co_qualname, n, text_of(frame.f_locals.get(n))) for n in names)
            calls.add((code.co_qualname, "", ""))

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
