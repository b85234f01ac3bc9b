"""Options and arguments that several commands have in common."""

from typing import Annotated

import typer

IdsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID...", help="IDs, or - to read them from stdin, one a line."),
]
NullOption = Annotated[
    bool,
    typer.Option("-0", "--null", help="IDs on stdin, and those of -o ids, end with NUL."),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Report what would be done, but change nothing.")
]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Also where another session still holds the lease.")
]
YesToForceOption = Annotated[
    bool, typer.Option("--yes", help="Do not ask before --force ends leases.")
]
NullIdsOption = Annotated[
    bool, typer.Option("-0", "--null", help="-o ids ends each ID with NUL, unescaped.")
]
NullRecordsOption = Annotated[
    bool, typer.Option("-0", "--null", help="-o ids and -o data end each with NUL, unescaped.")
]
LimitOption = Annotated[
    int, typer.Option("-n", "--limit", metavar="N", min=0, help="How many at most; 0 for all.")
]
DataOption = Annotated[
    bool, typer.Option("--data", help="Read all of the data, for json, jsonl and csv.")
]
