"""All cases, in the order of the table."""

from benchmarks.cases import adding, cleaning, looking, moving, removing, scheduling, starting

CASES = {
    case.name: case
    for module in (starting, adding, removing, moving, scheduling, cleaning, looking)
    for case in module.CASES
}
