"""All cases, in the order of the table."""

from benchmarks.cases import (
    adding,
    cleaning,
    crowded,
    distant,
    following,
    large,
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
        *(spreading, crowded, distant, following, large),
    )
    for case in module.CASES
}
