"""For each option of each command, a line on which it has something to do, and a value for it."""

from itertools import chain
from typing import Any, NamedTuple

from rwq_cli.cli.options import COMMON_NAMES
from tests.verbs import COMMANDS, IDS_BY_STATE, LINES, has_option

# By the metavar, a value that no option has by default; of enumerations the last one.
VALUES = {
    "DUR": "7m",
    "N": "2",
    "GLOB": "x*",
    "REGEX": "of.w2",
    "EXPR": "n=1",
    "STATE": "abandoned",
    "ID": "w2",
    "FILE": "{file}",
    "EXPORT": "{export}",
    "QUEUE": "other",
    "URL": "{url}?db=1",
    "NAME": "elsewhere",
    "SESSION": "worker-7",
    "TEXT": "because",
    "HOST:PORT": "127.0.0.1:0",
    "DIR": "{home}",
    "NAME=RANGE": "waiting=1",
    "CODE,...": "abandoned",
    "CMD": "true",
    "COLOR": "red",
    "RULE": "line",
    "TIME": "2040-01-01T00:00:00Z",
    "COMMAND": "cat",
    "KEY": "queue",
    "N/s": "77/s",
}
SERVICE = "{path} --grace 0 --every 1h"
ADD = "add -f {file}"
# By the option, or by it behind the name of its command: a line, and other words for it.
OF_OPTIONS: dict[str, tuple[str, str]] = {
    "add --file": ("add -f {other}", "-f {file}"),
    "add --format": (ADD, "--format jsonl"),
    "add --id": ("add x", "--id k"),
    "add --id-from": (ADD, "--id-from line"),
    "add --strict": ("add --format jsonl -f {bad}", "--strict"),
    "add --reconnect": ("add x --id k", "--reconnect 7m"),
    "work --fair": ("work -q jobs -q copy --drain -- true", "--fair"),
    "work --on-fail": ("work --drain -- true", "--on-fail reject"),
    "work --input": ("work --drain -- true", "--input none"),
    "work --task-dir": ("work --drain", "--task-dir {tasks}"),
    "work --result-ttl": ("work --drain --result -- true", "--result-ttl 7m"),
    "work --drain": ("work -q none --idle 1ms -- true", "--drain"),
    "lease --fair": ("lease -q jobs -q copy", "--fair"),
    "lease --id": ("lease", "--id w2"),
    "lease --number": ("lease", "-n 3"),
    "complete --result-ttl": ("complete w1 --result {file}", "--result-ttl 7m"),
    "complete --owner": ("complete l1", "--owner worker-7"),
    "complete --result": ("complete w1", "--result {file}"),
    "complete --rejected": ("complete w1", "--rejected"),
    "touch --state": ("touch -n 50 --dry-run", "--state held"),
    "touch --for": ("touch l1", "--for 7m"),
    "release --front": ("release a1", "--front"),
    "release --delay": ("release a1", "--delay 7m"),
    "release --force": ("release l1", "--force --yes"),
    "bury --force": ("bury l1", "--force --yes"),
    "bury --yes": ("bury --state waiting -c guarded", "--yes=guarded"),
    "bury --reason": ("bury w1", "--reason because"),
    "edit --file": ("edit w1 --yes", "--file {file}"),
    "edit --run": ("edit w1 --yes", "--run cat"),
    "edit --lines": ("edit w1 --yes --run cat", "--lines"),
    "edit --allow-empty": ("edit w1 --yes --run true", "--allow-empty"),
    "mv --to": ("mv w1 --to {other} --yes", "--to copy"),
    "mv --force": ("mv l1 --to other --yes", "--force"),
    "mv --follow": ("mv --state waiting --to other --yes", "--follow"),
    "undo --dry-run": ("undo --yes", "--dry-run"),
    **{f"undo {name}": ("undo", name) for name in ("--list", "--yes")},
    "undo --anywhere": ("undo --yes -u {url}?db=1", "--anywhere"),
    "undo --prune": ("undo --older-than 0 --yes", "--prune"),
    "undo --older-than": ("undo --prune --dry-run", "--older-than 7m"),
    "ls --deep": ("ls all", "--deep"),
    "ls --state": ("ls", "--state abandoned"),
    "show --data": ("show w1", "--data"),
    "--data": ("{path} -o json", "--data"),
    "leases --state": ("leases", "--state held"),
    "wait --id": ("wait --timeout 10ms", "--id w2"),
    "work --notify": ("work --drain -- true", "--notify"),
    "work --listen": ("work --drain -- true", "--listen 127.0.0.1:0"),
    "--notify": (SERVICE, "--notify"),
    "--listen": (SERVICE, "--listen 127.0.0.1:0"),
    "--deep-every": (SERVICE, "--deep-every 7m"),
    "doctor --dry-run": ("doctor --grace 0 --fix", "--dry-run"),
    "--only": ("doctor --grace 0", "--only ghost"),
    "check --format": ("check", "--format prometheus"),
    "import --on-conflict": ("import {export}", "--on-conflict replace --yes"),
    "import --strict": ("import {bad_export}", "--strict"),
    "import --yes": ("import {export} --on-conflict replace", "--yes"),
    "--result": ("work --drain -- true", "--result"),
    "context set --protect": ("context set dev", "--protect type"),
    "context set --unset": ("context set dev", "--unset queue"),
    "check --must-exist": ("check -q none", "--must-exist"),
    "diff --file": ("diff jobs", "--file {export}"),
    "work --rate": ("work --drain -- true", "--rate 100/s"),
    "--install": ("completion bash", "--install"),
}
# What chooses items is looked at where it chooses for all verbs alike.
_CHOOSING = {"--state", "--match", "--where", "--id-glob", "--older-than", "--holder", "--reason"}
_CHOOSING |= {"--returns", "--mine", "--ttl"}


class OptionLine(NamedTuple):
    """A line without the option, and the words that give it."""

    path: str
    option: str
    line: str
    words: str
    is_repeatable: bool = False

    def with_option(self) -> str:
        """The line with the option, before what `work` runs."""
        line, end, command = self.line.partition(" -- ")
        return f"{line} {self.words}{end}{command}"


def _line(path: str, parameter: Any) -> OptionLine:
    option = next(name for name in parameter.opts if name.startswith("--"))
    chooses = has_option(path, "--all") and has_option(path, "--dry-run")
    words = option
    if not parameter.is_flag:
        choices = getattr(parameter.type, "choices", None)
        value = str(list(choices)[-1]) if choices else VALUES[parameter.metavar]
        words = f"{option} {value}"
    known = OF_OPTIONS.get(f"{path} {option}") or OF_OPTIONS.get(option)
    if known is not None:
        line, words = known
    elif option == "--yes":
        line, words = LINES[path].replace(" --yes", ""), "--yes"
        if line == LINES[path]:
            line, words = f"{path} --older-than 0 -c guarded", "--yes=guarded"
    elif option == "--all" and chooses:
        line = f"{' '.join(_without_ids(path))} --dry-run"
    elif option == "--null":
        line = f"{LINES[path]} -o ids"
    elif chooses and option in _CHOOSING:
        line = f"{' '.join(_without_ids(path))} -n 50 --dry-run"
    elif chooses and option == "--limit":
        line = f"{' '.join(_without_ids(path))} --all --dry-run"
    else:
        line = LINES[path]
    return OptionLine(path, option, line.replace("{path}", path), words, parameter.multiple)


def _without_ids(path: str) -> list[str]:
    ids = {item_id.decode() for item_id in (*chain(*IDS_BY_STATE.values()), b"gone")}
    line = LINES[path].replace("-f /dev/null", "--run cat")
    return [word for word in line.split() if word not in {*ids, "--force", "--yes"}]


# `top` has a terminal, and `demo` and `local` servers of their own: their tests are beside them.
OPTION_LINES = [
    _line(path, parameter)
    for path in LINES
    if not path.startswith("local ")
    for parameter in COMMANDS[path].command.params
    if parameter.param_type_name == "option" and parameter.name not in (*COMMON_NAMES, "help")
]
