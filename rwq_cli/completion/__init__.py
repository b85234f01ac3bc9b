"""Typer's completion in bash, zsh and fish, with what its scripts and classes leave out.

bash splits words at `:` and `=`; they are joined again here. Descriptions do not need rich.
"""

import re
from contextlib import suppress
from typing import Any

from typer._click.shell_completion import CompletionItem, add_completion_class
from typer._completion_classes import BashComplete, FishComplete, ZshComplete
from typer.completion import shell_complete

from rwq_cli.cli.app import build_root
from rwq_cli.cli.settings import Call
from rwq_cli.environment import Environment

VARIABLE = "_RWQ_COMPLETE"
# A Tab waits at most this long for a server.
_TIMEOUT_S = 1.0


class _Described:
    """Offers whole words, `--queue=jobs` for `--queue=j`, with descriptions after `separator`."""

    separator = ""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        option, equals, _ = incomplete.partition("=")
        head = option + equals if equals and option.startswith("--") else ""
        found = super().get_completions(args, incomplete)  # type: ignore[misc]
        return [CompletionItem(head + item.value, help=item.help) for item in found]

    def format_completion(self, item: CompletionItem) -> str:
        texts = [item.value, " ".join(item.help.split()) if item.help else ""]
        shown = [super(_Described, self).format_completion(CompletionItem(text)) for text in texts]  # type: ignore[misc]
        return self.separator.join(shown if item.help and self.separator else shown[:1])


class _Bash(_Described, BashComplete):
    """Joins words that bash has split; of such a word, only the last piece is offered."""

    def get_completion_args(self) -> tuple[list[str], str]:
        args, last = super().get_completion_args()
        words = re.sub(r"\0([:=]+)(\0|$)", r"\1", "\0".join((*args, last))).split("\0")
        self._split = len(words[-1]) - (0 if last in (":", "=") else len(last))
        return words[:-1], words[-1]

    def complete(self) -> str:
        return "\n".join(word[self._split :] for word in super().complete().splitlines())


class _Zsh(_Described, ZshComplete):
    separator = ":"


class _Fish(_Described, FishComplete):
    separator = "\t"


def complete(instruction: str) -> None:
    """Print what Typer's scripts ask for; nothing if the server does not answer, for example."""
    for shell in (_Bash, _Zsh, _Fish):
        add_completion_class(shell, shell.name)
    call = Call(Environment.of_process())
    call.environment.quiet = True
    for name in ("connect_timeout", "reply_timeout"):
        call.give(name, _TIMEOUT_S)
    root: Any = build_root()
    with suppress(Exception):
        shell_complete(root, {"obj": call}, "rwq", VARIABLE, instruction)
