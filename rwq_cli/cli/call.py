"""A command line while it is read."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rwq_cli.cli.manual import Manual
from rwq_cli.environment import Environment

if TYPE_CHECKING:
    from rwq_cli.cli.settings import Settings


class Call:
    """A command line while it is read: `obj` of Typer's contexts."""

    def __init__(self, environment: Environment, arguments: Sequence[str] = ()) -> None:
        self.environment = environment
        self.arguments = arguments
        self.given: dict[str, Any] = {}
        self.manual = Manual()
        self.options: Mapping[str, Any] = {}

    def give(self, name: str, value: Any) -> None:
        if value not in (None, False, (), []):
            self.given[name] = list(value) if isinstance(value, tuple) else value

    @cached_property
    def settings(self) -> "Settings":
        from rwq_cli.cli.settings import Settings

        return Settings(self.environment, self.given, self.manual, self.options)

    def end_progress(self) -> None:
        if "settings" in vars(self):
            self.settings.end_progress()
