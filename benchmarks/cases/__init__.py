"""All cases, in the order of the table."""

from benchmarks.cases import (
    adding,
    cleaning,
    looking,
    moving,
    removing,
    scheduling,
    starting,
    working,
)

CASES = {
    case.name: case
    for module in (starting, adding, removing, moving, scheduling, cleaning, looking, working)
    for case in module.CASES
}
