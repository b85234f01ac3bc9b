"""All cases, in the order of the table."""

from benchmarks.cases import (
    adding,
    cleaning,
    looking,
    moving,
    removing,
    scheduling,
    spreading,
    starting,
    working,
)

CASES = {
    case.name: case
    for module in (
        *(starting, adding, removing, moving, scheduling, cleaning, looking, working),
        spreading,
    )
    for case in module.CASES
}
