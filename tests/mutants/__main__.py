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
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import chain
from pathlib import Path

from tests.mutants import report
from tests.mutants.faults import FAULTS, Fault
from tests.mutants.report import Verdict
from tests.mutants.running import FAST, REST, DoesNotEnd, Trees, parts_of
from tests.mutants.tree import ROOT, DoesNotApply, check

_BY_NAME = {fault.name: fault for fault in FAULTS}


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="faults; all if none is named")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, help="so many at once")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--all", action="store_true", help="run the whole suite for each fault")
    how.add_argument("--fast", action="store_true", help="run the fast sets only")
    how.add_argument("--list", action="store_true", help="say what each fault breaks, and end")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="keep the results there; those of other faults stay, if they are in the table",
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there")
    options = parser.parse_args(words)
    if unknown := options.names - _BY_NAME.keys():
        parser.error(f"no fault is named {', '.join(unknown)}; --list names them")
    return options


def _run(trees: Trees, faults: Sequence[Fault], options: argparse.Namespace) -> list[Verdict]:
    verdicts = {fault.name: Verdict(fault) for fault in faults}
    turns = range(len(FAST) + (not options.fast))
    for turn in turns:
        wanted = [
            (fault, parts_of(fault)[turn])
            for fault in faults
            if options.all or not verdicts[fault.name].found
        ]
        for part in sorted({part for _, part in wanted}):
            for line in trees.run_clean(part):
                print(line, flush=True)
        # The rest of the suite takes all of the machine.
        at_once = 1 if parts_of(faults[0])[turn] == REST else options.j
        with ThreadPoolExecutor(at_once) as pool:
            try:
                runs = {pool.submit(trees.run, *each): each for each in wanted}
                for done in as_completed(runs):
                    fault, part = runs[done]
                    verdicts[fault.name].add(part, done.result())
                    print(*report.lines([verdicts[fault.name]]), flush=True)
                    if options.json:
                        _keep(options.json, [verdicts[fault.name]])
            except BaseException:
                trees.close()
                pool.shutdown(cancel_futures=True)
                raise
    return list(verdicts.values())


def _keep(path: Path, verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Write verdicts to a file, in which those on other faults stay; return all of them."""
    known = json.loads(path.read_text()) if path.exists() else []
    by_name = {
        entry["fault"]: Verdict.of_json(entry, _BY_NAME[entry["fault"]])
        for entry in known
        if entry["fault"] in _BY_NAME
    }
    by_name |= {verdict.fault.name: verdict for verdict in verdicts}
    found = [by_name[name] for name in _BY_NAME if name in by_name]
    path.write_text(json.dumps([verdict.as_json() for verdict in found], indent=1) + "\n")
    return found


def _code() -> str:
    """Which code it is, in words."""
    words = ["git", "log", "-1", "--format=%h", "--", "rwq_cli"]
    commit = subprocess.run(words, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "rwq_cli"], cwd=ROOT)
    return f"rwq_cli at {commit}{', with changes' if changed.returncode else ''}"


def _main(words: Sequence[str]) -> int:
    options = _arguments(words)
    faults = [_BY_NAME[name] for name in dict.fromkeys(options.names)] or list(FAULTS)
    if options.list:
        print(*(f"{fault.name}\n    {fault.breaks}" for fault in faults), sep="\n")
        return 0
    try:
        check(faults)
        began_s = time.monotonic()
        trees = Trees()
        try:
            verdicts = _run(trees, faults, options)
        finally:
            trees.close()
    except (DoesNotApply, DoesNotEnd) as error:
        print(error, file=sys.stderr)
        return 2
    took_s = time.monotonic() - began_s
    failed = any(verdict.is_bad for verdict in verdicts)
    if options.json:
        verdicts = _keep(options.json, verdicts)
    fast_files = [entry.partition("::")[0] for entry in chain.from_iterable(FAST.values())]
    ending = report.conclusions(verdicts, fast_files)
    if options.markdown:
        options.markdown.write_text(report.markdown(verdicts, _code(), ending))
    print("", *report.lines(verdicts), "", *ending, sep="\n")
    print(f"{len(faults)} faults in {_code()}: {took_s:.0f} s, {options.j} at once")
    return int(failed)


if __name__ == "__main__":
    # Also where a shell has started it in the background; and a runner that is ended ends all.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        sys.exit(_main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("interrupted; nothing is left running", file=sys.stderr)
        sys.exit(130)
