"""Typer's completion in bash, zsh and fish, with what its scripts and classes leave out.

bash splits words at `:` and `=`, and does not quote spaces; both is done here. Descriptions do not
need rich.
"""

import os
import re
from contextlib import suppress
from typing import Any

# What `typer.completion` itself calls; its types are not exported.
from typer.completion import (  # type: ignore[attr-defined]
    completion_init,
    get_completion_script,
    shell_complete,
    shell_completion,
)

from rwq_cli.cli.app import build_root
from rwq_cli.cli.settings import Call
from rwq_cli.environment import Environment

VARIABLE = "_RWQ_COMPLETE"
# A Tab waits at most this long for a server.
_TIMEOUT_S = 1.0

completion_init()
_BashComplete, _ZshComplete, _FishComplete = map(
    shell_completion.get_completion_class, ("bash", "zsh", "fish")
)
CompletionItem: Any = shell_completion.CompletionItem


def script_of(shell: str) -> str:
    script: str = get_completion_script(prog_name="rwq", complete_var=VARIABLE, shell=shell)
    return script


class _Described:
    """Offers whole words, `--queue=jobs` for `--queue=j`, with descriptions after `separator`."""

    separator = ""

    def get_completions(self, args: list[str], incomplete: str) -> list[Any]:
        option, equals, _ = incomplete.partition("=")
        head = option + equals if equals and option.startswith("--") else ""
        items = super().get_completions(args, incomplete)  # type: ignore[misc]
        return [CompletionItem(head + item.value, help=item.help) for item in items]

    def format_completion(self, item: Any) -> str:
        texts = [item.value, " ".join(item.help.split()) if item.help else ""]
        words = [super(_Described, self).format_completion(CompletionItem(text)) for text in texts]  # type: ignore[misc]
        return self.separator.join(words if item.help and self.separator else words[:1])


class _Bash(_Described, _BashComplete):  # type: ignore[misc, valid-type]
    """Joins words that bash has split; of such a word, only the last piece is offered."""

    def get_completion_args(self) -> tuple[list[str], str]:
        args, last = super().get_completion_args()
        words = re.sub(r"\0([:=]+)(\0|$)", r"\1", "\0".join((*args, last))).split("\0")
        self._split = len(words[-1]) - (0 if last in (":", "=") else len(last))
        # readline leaves an opening quote where it is.
        typed = os.environ["COMP_WORDS"].split("\n")[int(os.environ["COMP_CWORD"]) :]
        self._space = " " if typed and typed[0][:1] in ("'", '"') else r"\ "
        return words[:-1], words[-1]

    def complete(self) -> str:
        words = (word[self._split :] for word in super().complete().splitlines())
        return "\n".join(word.replace(" ", self._space) for word in words)


class _Zsh(_Described, _ZshComplete):  # type: ignore[misc, valid-type]
    separator = ":"


class _Fish(_Described, _FishComplete):  # type: ignore[misc, valid-type]
    separator = "\t"


def complete(instruction: str) -> None:
    """Print what Typer's scripts ask for; nothing if the server does not answer, for example."""
    for shell in (_Bash, _Zsh, _Fish):
        shell_completion.add_completion_class(shell, shell.name)
    call = Call(Environment.of_process())
    call.environment.quiet = True
    for name in ("connect_timeout", "reply_timeout"):
        call.set_common_option(name, _TIMEOUT_S)
    root: Any = build_root()
    with suppress(Exception):
        shell_complete(root, {"obj": call}, "rwq", VARIABLE, instruction)
