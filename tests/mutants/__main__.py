"""`python -m tests.mutants`: put one fault after the other into the code, and see what finds it.

Each is put into a copy of the working tree. The fast sets run first, the one that finds most in its
part of the code before the others, then the rest of the suite, until something finds it. The exit
code is 1 if a fault is found by nothing or makes the suite hang, 2 if one does not apply to the
code any more or the suite does not end without one, 130 after Ctrl-C.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import chain
from pathlib import Path

from tests.mutants.faults import FAULTS, Fault
from tests.mutants.running import FAST, REST, DoesNotEnd, Trees, Verdict, parts_of
from tests.mutants.tree import DoesNotApply, check

_BY_NAME = {fault.name: fault for fault in FAULTS}
Verdicts = dict[str, Verdict]


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="faults; all if none is named")
    parser.add_argument("--sample", type=int, metavar="N", help="N random ones; names are paths")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    results = Path(tempfile.gettempdir(), "rwq-mutants.jsonl")
    parser.add_argument("--results", type=Path, default=results, help="where a sample's are added")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, help="so many at once")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--all", action="store_true", help="run the whole suite for each fault")
    how.add_argument("--fast", action="store_true", help="run the fast sets only, for now")
    how.add_argument("--list", action="store_true", help="say what each fault breaks, and end")
    parser.add_argument("--json", type=Path, metavar="FILE", help="add the results to those there")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there")
    options = parser.parse_args(words)
    if options.sample is None and (unknown := set(options.names) - _BY_NAME.keys()):
        parser.error(f"no fault is named {', '.join(unknown)}; --list names them")
    return options


def _run(faults: Sequence[Fault], options: argparse.Namespace, verdicts: Verdicts) -> None:
    trees = Trees()
    pool = ThreadPoolExecutor(options.j)
    try:
        for turn in range(len(FAST) + (not options.fast)):
            wanted = [
                (fault, parts_of(fault)[turn])
                for fault in faults
                if options.all or not verdicts[fault.name].found
            ]
            for part in sorted({part for _, part in wanted}):
                if said := trees.run_clean(part):
                    print(said, flush=True)
            if turn == len(FAST):
                # The rest of the suite takes all of the machine.
                pool = ThreadPoolExecutor(1)
            runs = {pool.submit(trees.run, *each): each[0].name for each in wanted}
            for done in as_completed(runs):
                verdicts[runs[done]].add(done.result())
                print(*_lines({runs[done]: verdicts[runs[done]]}), flush=True)
    finally:
        trees.close()
        pool.shutdown(cancel_futures=True)


# The table of a run.


def _short(file: str) -> str:
    return file.removeprefix("tests/").removesuffix(".py")


def _row(name: str, verdict: Verdict) -> tuple[str, str, str, str]:
    files = ", ".join(f"{_short(file)} {n}" for file, n in verdict.found.most_common())
    if verdict.hangs_in:
        files = f"HANGS in {verdict.hangs_in}; {files}"
    return name, files or "NOTHING", str(verdict.found.total()), f"{verdict.seconds:.0f}"


def _lines(verdicts: Mapping[str, Verdict]) -> list[str]:
    rows = (_row(*each) for each in verdicts.items())
    return [f"{name:<44} {cells:>5} {seconds:>4}s  {files}" for name, files, cells, seconds in rows]


def _conclusions(verdicts: Mapping[str, Verdict]) -> list[str]:
    """What one file alone finds, which files of the fast sets do not, and what is wrong."""
    alone: dict[str, list[str]] = {}
    for name, verdict in verdicts.items():
        if len(verdict.found) == 1:
            alone.setdefault(*verdict.found, []).append(name)
    said = [
        f"alone found by {_short(file)}: {', '.join(names)}"
        for file, names in sorted(alone.items(), key=lambda pair: -len(pair[1]))
    ]
    fast = dict.fromkeys(entry.partition("::")[0] for entry in chain(*FAST.values()))
    for what, names in (
        ("of the fast sets, these find nothing alone", [_short(f) for f in fast if f not in alone]),
        ("not found by the fast sets", [n for n, each in verdicts.items() if REST in each.parts]),
        ("these make the suite hang", [n for n, each in verdicts.items() if each.hangs_in]),
        ("found by nothing", [n for n, each in verdicts.items() if not each.found]),
    ):
        said.append(f"{what}: {', '.join(names) or 'none'}")
    return said


def _markdown(verdicts: Mapping[str, Verdict]) -> str:
    head = ("fault", "found by, with how many cells", "cells", "s")
    rows = [head, ("---", "---", "--:", "--:"), *(_row(*each) for each in verdicts.items())]
    table = [f"| {' | '.join(row)} |" for row in rows]
    about = f"{len(verdicts)} faults, each alone; made by `python -m tests.mutants`."
    bullets = [f"- {line}" for line in _conclusions(verdicts)]
    return "\n".join(["# What finds which fault", "", about, "", *table, "", *bullets, ""])


def _main(words: Sequence[str]) -> int:
    options = _arguments(words)
    if options.sample is not None:
        # Its tools are not needed for the others.
        from tests.mutants.sampling import run

        return run(
            *(options.names, options.sample, options.seed, options.results, options.j),
            fast=options.fast,
        )
    faults = [_BY_NAME[name] for name in dict.fromkeys(options.names)] or list(FAULTS)
    if options.list:
        print(*(f"{fault.name}\n    {fault.breaks}" for fault in faults), sep="\n")
        return 0
    began_s = time.monotonic()
    verdicts = {fault.name: Verdict() for fault in faults}
    try:
        check(faults)
        _run(faults, options, verdicts)
    except (DoesNotApply, DoesNotEnd) as error:
        print(error, file=sys.stderr)
        return 2
    is_bad = any(not each.found or each.hangs_in for each in verdicts.values())
    if options.json:
        known = json.loads(options.json.read_text()) if options.json.exists() else {}
        known |= {name: vars(verdict) for name, verdict in verdicts.items()}
        options.json.write_text(json.dumps(known, indent=1) + "\n")
        known = {name: known[name] for name in _BY_NAME if name in known}
        verdicts = {n: Verdict(**{**v, "found": Counter(v["found"])}) for n, v in known.items()}
    if options.markdown:
        options.markdown.write_text(_markdown(verdicts))
    print("", *_lines(verdicts), "", *_conclusions(verdicts), sep="\n")
    print(f"{len(faults)} faults: {time.monotonic() - began_s:.0f} s, {options.j} at once")
    return int(is_bad)


if __name__ == "__main__":
    # Also where a shell has started it in the background; and a runner that is ended ends all.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        sys.exit(_main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("interrupted; nothing is left running", file=sys.stderr)
        sys.exit(130)
