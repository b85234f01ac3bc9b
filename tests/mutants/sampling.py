"""`python -m tests.mutants --sample N --seed S [PATH…]`: faults that nobody has thought of.

A random sample of one-line changes: of Python by the operators of cosmic-ray, of Lua by those
below. Each is put into a tree of its own, and looked for by the tests that cover its line, then by
the fast sets for the core and whole screens for the rest, and by the whole suite. Results are
added to a file, so that a run can be cut and go on; `equivalent.txt` names the changes that change
nothing that anybody can see, and says why.
"""

import ast
import json
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from coverage import CoverageData

from tests.mutants.running import FAST, Trees
from tests.mutants.tree import ROOT

HERE = Path(__file__).parent
EQUIVALENT = HERE / "equivalent.txt"
# So many of the tests that cover a line are asked, those that cover least besides first.
_COVERING = 200
_SCREENS = (
    "tests/views",
    *(f"tests/kinds/test_{kind}.py" for kind in ("parameters", "transcripts", "screens")),
)
_LIMITS_S = {"covering": 600.0, "screens": 600.0, "fast": 600.0, "all": 1800.0}
# What found a mutant that nothing found, and one for which the whole suite has not run yet.
NOTHING, NOT_YET = "nothing", "not yet"
# Of Lua: what is found, what replaces it. Applied to one place of one line, outside of comments.
_LUA = (
    *((r"==", "~="), (r"~=", "=="), (r"<=", "<"), (r">=", ">"), (r"(?<![<>=~])<(?!=)", "<=")),
    *((r"(?<![<>=~])>(?!=)", ">="), (r"\band\b", "or"), (r"\bor\b", "and"), (r"\bnot ", "")),
    *((r"\btrue\b", "false"), (r"\bfalse\b", "true"), (r"\bnil\b", "false")),
    *((r" \+ ", " - "), (r" - ", " + ")),
    (r"(?<![\w.'])(\d+)(?![\w.'])", lambda match: str(int(match[1]) + 1)),
    # A call on its own line is dropped.
    (r"^ +(?:redis\.call|[a-z_]+)\(.*\)$", ""),
)


# Left out: those that need the name of a variable, and those that only change how identity is asked
# for, which is the same for enums, None and short strings.
_LEFT_OUT = re.compile("/Variable|_(Is_Eq|IsNot_NotEq|Eq_Is|NotEq_IsNot)$")
_OPERATORS = tuple(sorted(name for name in operator_names() if not _LEFT_OUT.search(name)))


class Mutant(NamedTuple):
    """A changed line: its file, its number, and how the file then reads."""

    file: str
    line: int
    operator: str
    before: str
    after: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line} {self.operator}: {self.before} -> {self.after}"


# Drawing.


def sample(paths: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """Draw places at random, and for each a random change."""
    places = [place for file in _files(paths) for place in _places(file)]
    drawn = random.Random(seed)
    drawn.shuffle(places)
    mutants = (_mutant(file, drawn.choice(changes)) for file, changes in places)
    return [mutant for mutant, _ in zip(filter(None, mutants), range(count), strict=False)]


def _files(paths: Sequence[str]) -> list[str]:
    words = ["git", "ls-files", "--", *(paths or ["rwq_cli"])]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [file for file in listed.splitlines() if file.endswith((".py", ".lua"))]


# The name of an operator, and which occurrence of what it changes.
Change = tuple[str, int]


def _places(file: str) -> Iterator[tuple[str, list[Change]]]:
    """The places of a file that can be changed, each with its changes."""
    source = (ROOT / file).read_text("utf-8")
    at: dict[tuple[int, int], list[Change]] = {}
    if file.endswith(".lua"):
        for number, line in enumerate(source.splitlines()):
            code = line.partition("--")[0]
            for index, (pattern, _) in enumerate(_LUA):
                for match in re.finditer(pattern, code):
                    at.setdefault((number, match.start()), []).append((str(index), 0))
        for (number, column), changes in at.items():
            yield file, [(f"lua/{number}/{column}/{index}", 0) for index, _ in changes]
        return
    annotations = list(_annotations(ast.parse(source)))
    tree = get_ast(source)
    for name in _OPERATORS:
        operator, occurrence = get_operator(name)(), 0
        for node in ast_nodes(tree):
            for start, _ in operator.mutation_positions(node):
                if not any(first <= start < last for first, last in annotations):
                    at.setdefault(start, []).append((name, occurrence))
                occurrence += 1
    yield from ((file, changes) for changes in at.values())


def _annotations(tree: ast.AST) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Where types are: changing them changes nothing, or nothing can be imported."""
    for node in ast.walk(tree):
        types = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        for kind in types:
            if isinstance(kind, ast.expr) and "Annotated" not in ast.dump(kind):
                end = kind.end_lineno or 0, kind.end_col_offset or 0
                yield (kind.lineno, kind.col_offset), end


def _mutant(file: str, change: Change) -> Mutant | None:
    name, occurrence = change
    source = (ROOT / file).read_text("utf-8")
    if name.startswith("lua/"):
        number, column, index = map(int, name.split("/")[1:])
        lines = source.splitlines(keepends=True)
        pattern, replacement = _LUA[index]
        match = re.compile(pattern).search(lines[number].rstrip("\n"), column)
        assert match is not None
        new = match.expand(replacement) if isinstance(replacement, str) else replacement(match)
        lines[number] = lines[number][: match.start()] + new + lines[number][match.end() :]
        text, name = "".join(lines), "lua"
    else:
        try:
            text = mutate_code(source, get_operator(name)(), occurrence) or source
        except AttributeError:
            # Its replacer of exceptions knows no dotted names.
            return None
    pairs = zip(source.splitlines(), text.splitlines(), strict=False)
    for number, (before, after) in enumerate(pairs, 1):
        if before != after:
            return Mutant(file, number, name, before.strip(), after.strip(), text)
    return None


# Looking.


def covering_tests(data_file: Path) -> dict[str, dict[int, list[str]]]:
    """The tests that cover each line of each file, by the contexts of a run with coverage; those
    that cover the fewest lines first. Without the file, the suite is run to make it."""
    if not data_file.exists():
        words = ["-n", "4", "-q", "--cov=rwq_cli", "--cov-context=test", "--cov-report="]
        subprocess.run(
            [sys.executable, "-m", "pytest", *words],
            cwd=ROOT,
            env={**os.environ, "COVERAGE_FILE": str(data_file)},
            check=False,
        )
    data = CoverageData(str(data_file))
    data.read()
    by_file: dict[str, dict[int, list[str]]] = {}
    lines_of: Counter[str] = Counter()
    for path in data.measured_files():
        by_line = {
            line: [test.rpartition("|")[0] for test in tests if test]
            for line, tests in data.contexts_by_lineno(path).items()
        }
        by_file[path.rpartition("/rwq_cli/")[2]] = by_line
        lines_of.update(chain.from_iterable(by_line.values()))
    for by_line in by_file.values():
        for tests in by_line.values():
            tests.sort(key=lines_of.__getitem__)
    return by_file


def _words_by_stage(
    mutant: Mutant, covering: dict[str, dict[int, list[str]]]
) -> dict[str, Sequence[str]]:
    by_line = covering.get(mutant.file.removeprefix("rwq_cli/"), {})
    tests = [
        test for line in range(mutant.line, mutant.line - 4, -1) for test in by_line.get(line, ())
    ]
    stages = {"covering": ["-n", "0", *dict.fromkeys(tests[:_COVERING])]} if tests else {}
    if mutant.file.startswith("rwq_cli/core/"):
        stages["fast"] = ["-n", "2", *FAST["model"], *FAST["core"], *FAST["states"]]
    else:
        stages["screens"] = ["-n", "0", *_SCREENS]
    return {**stages, "all": ["-n", "4", "tests"]}


def look_for(
    mutant: Mutant,
    trees: Trees,
    covering: dict[str, dict[int, list[str]]],
    stages: Sequence[str],
    failing: Iterable[str],
) -> dict[str, object]:
    """Look for a mutant in these stages until one finds it; which did, and how long it took. What
    is `failing` anyway finds nothing."""
    began_s, words_of = time.monotonic(), _words_by_stage(mutant, covering)
    result: dict[str, object] = {"stage": NOTHING, "by": [], "hangs_in": ""}
    for stage in filter(words_of.__contains__, stages):
        words = ["-x", *words_of[stage], *(f"--deselect={cell}" for cell in failing)]
        failed, hangs_in = trees.run_words(mutant.file, mutant.text, words, _LIMITS_S[stage])
        if failed or hangs_in:
            result = {"stage": stage, "by": sorted(failed)[:3], "hangs_in": hangs_in}
            break
    return {**result, "seconds": round(time.monotonic() - began_s)}


def _failing(trees: Trees, file: str) -> list[str]:
    """What fails of the fast sets and the screens without any change."""
    words = ["-n", "2", *_SCREENS, *FAST["model"], *FAST["core"], *FAST["states"]]
    text = (ROOT / file).read_text("utf-8")
    failed, _ = trees.run_words(file, text, words, _LIMITS_S["all"])
    return [cell.strip() for cell in failed]


def _without_line(name: str) -> str:
    """The name of a mutant wherever in its file the line is by now."""
    return re.sub(r":\d+ ", " ", name, count=1)


def equivalents() -> dict[str, str]:
    """The mutants that change nothing, as `_without_line`, each with the reason."""
    if not EQUIVALENT.exists():
        return {}
    blocks = EQUIVALENT.read_text("utf-8").split("\n\n")
    pairs = (block.strip().partition("\n    ") for block in blocks if block.strip())
    return {name: reason for name, _, reason in pairs if reason}


def run(
    paths: Sequence[str], count: int, seed: int, results_file: Path, jobs: int, *, fast: bool
) -> int:
    """Look for a sample of mutants that the file has no result of; print the table. With `fast`,
    the whole suite is left to a later run."""
    mutants = sample(paths, count, seed)
    results = _read(results_file)
    done = [name for name, result in results.items() if fast or result["stage"] != NOT_YET]
    missing = [mutant for mutant in mutants if mutant.name not in done]
    if missing:
        covering = covering_tests(results_file.with_suffix(".coverage"))
        trees = Trees()
        try:
            failing = _failing(trees, missing[0].file)
            print(
                *(f"fails without a change, and finds nothing: {cell}" for cell in failing),
                sep="\n",
            )
            with ThreadPoolExecutor(jobs) as pool, results_file.open("a") as file:

                def look(mutant: Mutant) -> tuple[Mutant, dict[str, object]]:
                    before = results.get(mutant.name, {}).get("stage") == NOT_YET
                    stages = ["all"] if before else [*_LIMITS_S][: 3 if fast else 4]
                    result = look_for(mutant, trees, covering, stages, failing)
                    if fast and result["stage"] == NOTHING:
                        result["stage"] = NOT_YET
                    return mutant, result

                for mutant, result in pool.map(look, missing):
                    results[mutant.name] = result
                    file.write(json.dumps({"mutant": mutant.name, **result}) + "\n")
                    file.flush()
                    print(
                        f"{result['stage']:<9} {result['seconds']:>4} s  {mutant.name}", flush=True
                    )
        finally:
            trees.close()
    print(*table([mutant.name for mutant in mutants], results), sep="\n")
    return 0


def _read(file: Path) -> dict[str, dict[str, object]]:
    lines = file.read_text().splitlines() if file.exists() else []
    return {record.pop("mutant"): record for record in map(json.loads, lines)}


def table(names: Iterable[str], results: dict[str, dict[str, object]]) -> list[str]:
    """How many were found, by folder, of those that are not equivalent."""
    total, found, ignored = Counter[str](), Counter[str](), Counter[str]()
    missed, same = [], equivalents()
    for name in names:
        parts = name.partition(":")[0].split("/")
        folder = "/".join(parts[1:3] if parts[1] == "core" else parts[1:2])
        if _without_line(name) in same:
            ignored[folder] += 1
            continue
        total[folder] += 1
        is_found = results[name]["stage"] not in (NOTHING, NOT_YET)
        found[folder] += is_found
        missed += [] if is_found else [name]
    rows = [
        f"| {folder} | {found[folder]} | {total[folder]} | {ignored[folder]} |"
        for folder in sorted(total | ignored)
    ]
    share = 100 * found.total() / max(1, total.total())
    head = ["| folder | found | of | equivalent |", "| --- | --: | --: | --: |"]
    last = f"| all | {found.total()} ({share:.0f} %) | {total.total()} | {ignored.total()} |"
    return [*head, *rows, last, "", *(f"not found: {name}" for name in missed)]
