"""Ten recipes: for the help and docs/scripting.md. A test runs each of them."""

from typing import NamedTuple


class Recipe(NamedTuple):
    title: str
    text: str
    commands: tuple[str, ...]


RECIPES = (
    Recipe(
        "Process a queue in a shell script",
        "`lease` exits with 1 if there is no item, which ends the loop, as an error does; with "
        "`--wait` it waits for the next one. If the work fails, the lease expires, and a clean "
        "returns the item.",
        (
            "while id=$(rwq lease -q jobs --for 10m -o ids); do",
            '    rwq show -q jobs -o data -- "$id" >job && ./work <job && '
            'rwq complete -q jobs -- "$id"',
            "done",
        ),
    ),
    Recipe(
        "Keep a queue healthy with cron",
        "Run the first line every minute, the second every six hours, and the third as often as "
        "your monitoring does: it exits with 0, 1 or 2 for OK, WARNING or CRITICAL. All of them "
        "are safe while workers and other cleaners run. Instead of cron, `rwq clean light -q jobs "
        "--every 1m --deep-every 6h` can run as a service.",
        (
            "rwq clean light -q jobs -Q",
            "rwq clean deep -q jobs -Q",
            "rwq check -q jobs --warn age=15m --critical abandoned=100",
        ),
    ),
    Recipe(
        "Find out why an item is stuck, and fix it",
        "`show` explains one item and names the commands to run next. `doctor` does so for the "
        "whole queue; it exits with 1 while there are errors or warnings.",
        (
            "rwq show -q jobs 4f2a9c",
            "rwq doctor -q jobs",
            "rwq doctor -q jobs --fix --dry-run",
            "rwq doctor -q jobs --fix",
        ),
    ),
    Recipe(
        "Take back what rwq leased on a dead machine",
        "Its leases need not expire first. Make sure that nothing runs there any more: each item "
        "will be leased again. Leases of library workers do not name their host, and have to "
        "expire.",
        (
            "rwq leases -q jobs --holder 'rwq:*@deadhost:*' -n 0",
            "rwq leases -q jobs --holder 'rwq:*@deadhost:*' -n 0 -o ids -0 | "
            "rwq release -q jobs --force --yes -0 -",
        ),
    ),
    Recipe(
        "Set poison items aside",
        "A buried item waits until it is kicked; workers and cleaners leave it alone. With "
        "`--bury-after 3`, a clean buries an item that has been returned three times already.",
        (
            "rwq bury -q jobs 4f2a9c --reason 'bad address'",
            "rwq clean light -q jobs --bury-after 3",
            "rwq ls buried -q jobs",
            "rwq kick -q jobs 4f2a9c",
        ),
    ),
    Recipe(
        "Find an item by its data, and make it the next one",
        "`--where` compares a value in JSON data; `--match REGEX` searches data of any kind. Every "
        "command that takes many items has both.",
        ("rwq ls -q jobs --where user.id=42 -n 1", "rwq release -q jobs --front 4f2a9c"),
    ),
    Recipe(
        "Remove items, and restore them",
        "Before `rm`, `mv` or `purge` removes anything, it writes an undo file. On a terminal it "
        "asks; elsewhere it needs `--yes`.",
        (
            "rwq rm -q jobs --where user.id=42 --dry-run",
            "rwq rm -q jobs --where user.id=42 --yes",
            "rwq undo -q jobs --yes",
        ),
    ),
    Recipe(
        "Wait until a batch is done",
        "`wait` exits with 0 once nothing waits, is in processing or is delayed, and with 1 if "
        "that takes too long. An abandoned item counts as in processing until a clean returns it.",
        ("rwq add -q jobs -f batch.txt", "rwq wait -q jobs --timeout 2h && ./publish"),
    ),
    Recipe(
        "Ask for something, and wait for the result",
        'The worker completes the item with `rwq complete -q jobs "$id" --result FILE`. `result` '
        "exits with 1 if the item is gone without one, or if that takes too long.",
        (
            "id=$(rwq add -q jobs -o ids 'resize cat.png')",
            'rwq result -q jobs --timeout 10m -o data -- "$id"',
        ),
    ),
    Recipe(
        "Copy a queue",
        "The copy has the same order, states, times and leases. For another server, give `import` "
        "its `-u URL`. If it is interrupted, run it again: it continues where it stopped.",
        ("rwq export -q jobs > jobs.jsonl", "rwq import -q jobs-copy jobs.jsonl"),
    ),
)
