"""The rows of the table, each measured side by side with what it is compared with."""

import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from benchmarks.filling import (
    PAYLOAD,
    data_commands,
    fill,
    new_ids,
    packed,
    pipe_command,
)
from benchmarks.measuring import (
    QUEUE,
    BenchServer,
    Row,
    alternating_medians,
    rwq_command,
    timed,
)


class Longest:
    """The longest call that rwq made the server do, over those that look."""

    def __init__(self) -> None:
        self.milliseconds = 0.0
        self.command = ""

    def look(self, bench: BenchServer) -> None:
        """Take in what SLOWLOG holds now, and reset it."""
        for milliseconds, command in bench.call_durations_ms()[:1]:
            if milliseconds > self.milliseconds:
                self.milliseconds, self.command = milliseconds, command
        bench.client.slowlog_reset()

    def row(self, over: str) -> Row:
        """The row that says so."""
        return Row(
            f"the server's longest single call, {over}",
            f"{self.milliseconds:.1f} ms ({self.command})",
            "",
            self.milliseconds,
            15,
        )


def startup(bench: BenchServer, scale: float, longest: Longest) -> Iterator[Row]:
    """Whole processes against `python -c 'import redis'`."""
    fill(bench, waiting=100)
    times = max(3, round(20 * min(1.0, scale * 10)))
    commands = {
        "import": [sys.executable, "-c", "import redis"],
        "rwq --version": [*rwq_command(bench)[:-4], "--version"],
        "rwq stats --fast -o json": rwq_command(bench, "stats", "--fast", "-o", "json"),
        "rwq ls, a table": rwq_command(bench, "ls", "-o", "table"),
    }
    medians = alternating_medians(commands, times)
    base = medians.pop("import")
    for (name, seconds), limit in zip(medians.items(), (0.6, 1.2, 1.5), strict=True):
        against = f"import redis: {base * 1000:.0f} ms"
        yield Row(f"start-up: {name}", f"{seconds * 1000:.0f} ms", against, seconds / base, limit)
    longest.look(bench)


def bulk_add(bench: BenchServer, scale: float, longest: Longest) -> Iterator[Row]:
    """JSON lines from stdin against valkey-cli --pipe of ready-made SET and LPUSH."""
    count = round(1_000_000 * scale)
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "lines"
        line = b'{"data":' + PAYLOAD + b"}\n"
        with lines.open("wb") as file:
            for _ in range(count):
                file.write(line)
        ready = Path(folder) / "ready"
        with ready.open("wb") as file:
            key = f"{QUEUE}:queue".encode()
            for item_id in new_ids(count):
                file.write(next(data_commands([item_id])) + packed(b"LPUSH", key, item_id))
        add = rwq_command(bench, "add", "--format", "jsonl")
        best: dict[str, float] = {}
        peak = 0.0
        for _ in range(3):
            for name, command, source in (
                ("pipe", pipe_command(bench), ready),
                ("checked", add, lines),
                ("unique", [*add, "--unique"], lines),
            ):
                bench.empty()
                bench.client.slowlog_reset()
                run = timed(command, stdin=source)
                best[name] = min(best.get(name, run.seconds), run.seconds)
                if name != "pipe":
                    longest.look(bench)
                    peak = max(peak, run.peak_mib)
                    assert bench.client.llen(f"{QUEUE}:queue") == count
        against = f"valkey-cli --pipe: {best['pipe']:.2f} s"
        for name, limit in (("checked", 1.7), ("unique", 1.3)):
            what = "duplicate-checked" if name == "checked" else "--unique"
            seconds = best[name]
            yield Row(
                f"bulk add of {count:,} JSON lines, {what}",
                f"{seconds:.2f} s",
                against,
                seconds / best["pipe"],
                limit,
            )
        yield Row(f"bulk add, peak memory at {count:,}", f"{peak:.0f} MiB", "", peak, 80)
        many = Path(folder) / "many"
        with many.open("wb") as file:
            for _ in range(count * 10):
                file.write(line)
        bench.empty()
        bench.client.config_set("maxmemory", 0)
        run = timed(add, stdin=many)
        # Of its own: ten times what the longest call is to be kept for.
        longest_of_many = Longest()
        longest_of_many.look(bench)
        yield Row(
            f"bulk add, peak memory at {count * 10:,}",
            f"{run.peak_mib:.0f} MiB",
            f"at a tenth: {peak:.0f} MiB",
            run.peak_mib / peak,
            1.1,
        )
        yield longest_of_many.row(f"adding {count * 10:,}")
        bench.empty()


def lease_and_complete(bench: BenchServer, scale: float, longest: Longest) -> Iterator[Row]:
    """`lease -n` into a file and `complete -` from it, against upstream's loop."""
    count = round(100_000 * scale)
    upstream_count = max(100, count // 20)
    upstream_s, taken_s = [], []
    for _ in range(3):
        fill(bench, waiting=upstream_count)
        upstream_s.append(_upstream_loop(bench, upstream_count))
        fill(bench, waiting=count)
        with tempfile.TemporaryDirectory() as folder:
            ids = Path(folder) / "ids"
            lease = timed(rwq_command(bench, "lease", "-n", str(count), "-o", "ids"), stdout=ids)
            complete = timed(rwq_command(bench, "complete", "-"), stdin=ids)
        longest.look(bench)
        assert bench.client.dbsize() == 0
        taken_s.append(lease.seconds + complete.seconds)
    # Upstream's loop waits for a reply at each step, and how long waking up takes varies threefold.
    rate, upstream_rate = count / median(taken_s), upstream_count / median(upstream_s)
    yield Row(
        f"lease -n and complete - of {count:,}",
        f"{rate:,.0f} items/s",
        f"upstream 0.1.5's loop: {upstream_rate:,.0f} items/s",
        rate / upstream_rate,
        40,
        at_least=True,
    )


def _upstream_loop(bench: BenchServer, count: int) -> float:
    from redis_work_queue import KeyPrefix, WorkQueue

    queue = WorkQueue(KeyPrefix(QUEUE))
    began = time.perf_counter()
    for _ in range(count):
        item = queue.lease(bench.client, 60, block=False)
        assert item is not None
        assert queue.complete(bench.client, item)
    return time.perf_counter() - began


def complete_in_long_processing(
    bench: BenchServer, scale: float, longest: Longest
) -> Iterator[Row]:
    """Half of a long processing list, in random order."""
    count = round(200_000 * scale)
    made = fill(bench, waiting=round(1_000_000 * scale), abandoned=count)
    chosen = random.Random(1).sample(made["abandoned"], count // 2)
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"".join(item_id + b"\n" for item_id in chosen))
        file.flush()
        run = timed(rwq_command(bench, "complete", "-"), stdin=Path(file.name))
    longest.look(bench)
    assert bench.client.llen(f"{QUEUE}:processing") == count - count // 2
    yield _seconds_row(
        f"complete {count // 2:,} of {count:,} in processing, at random", run.seconds, 3
    )


def light_clean(bench: BenchServer, scale: float, longest: Longest) -> Iterator[Row]:
    """Many abandoned beside many waiting."""
    count, waiting = round(100_000 * scale), round(1_000_000 * scale)
    fill(bench, waiting=waiting, abandoned=count)
    run = timed(rwq_command(bench, "clean", "light", "--grace", "0"))
    longest.look(bench)
    assert bench.client.llen(f"{QUEUE}:queue") == waiting + count
    yield _seconds_row(f"light clean, {count:,} abandoned, {waiting:,} waiting", run.seconds, 3)


def deep_clean(bench: BenchServer, scale: float, longest: Longest) -> Iterator[Row]:
    """A tenth orphaned; then ten times the items."""
    count = round(1_000_000 * scale)
    runs = []
    for items in (count, count * 10):
        fill(bench, waiting=items - items // 10, orphaned=items // 10)
        base = timed(rwq_command(bench, "stats", "--fast")).peak_mib
        run = timed(rwq_command(bench, "clean", "deep", "--grace", "0"))
        if items == count:
            longest.look(bench)
        bench.client.slowlog_reset()
        assert bench.client.llen(f"{QUEUE}:queue") == items
        runs.append(run)
        if items == count:
            yield _seconds_row(f"deep clean of {items:,}, {items // 10:,} orphaned", run.seconds, 8)
        else:
            growth = run.seconds / runs[0].seconds
            yield Row(
                f"deep clean of {items:,}",
                f"{run.seconds:.1f} s",
                f"a tenth: {runs[0].seconds:.1f} s",
                growth,
                12,
            )
        each = (run.peak_mib - base) * 1024 * 1024 / items
        yield Row(f"deep clean of {items:,}, memory an item", f"{each:.0f} bytes", "", each, 150)
    bench.empty()


def doctor(bench: BenchServer, scale: float, longest: Longest) -> Iterator[Row]:
    """The doctor against a deep clean that only looks, on a queue with a tenth orphaned."""
    items = round(1_000_000 * scale)
    fill(bench, waiting=items - items // 10, orphaned=items // 10)
    seconds, peaks = {}, {}
    for name, words in (("clean", ("clean", "deep", "--dry-run")), ("doctor", ("doctor",))):
        runs = [
            timed(rwq_command(bench, *words, "--grace", "0"), statuses=(0, 1)) for _ in range(3)
        ]
        seconds[name] = median(run.seconds for run in runs)
        peaks[name] = max(run.peak_mib for run in runs)
    longest.look(bench)
    what = f"doctor of {items:,}, {items // 10:,} orphaned"
    yield Row(
        what,
        f"{seconds['doctor']:.2f} s",
        f"clean deep --dry-run: {seconds['clean']:.2f} s",
        seconds["doctor"] / seconds["clean"],
        1.3,
    )
    yield Row(
        f"{what}, peak memory",
        f"{peaks['doctor']:.0f} MiB",
        f"clean deep --dry-run: {peaks['clean']:.0f} MiB",
        peaks["doctor"] / peaks["clean"],
        1.3,
    )


def take_away(bench: BenchServer, scale: float, longest: Longest) -> Iterator[Row]:
    """Removing, putting back and releasing many of a long queue: no limits but the longest call."""
    waiting, count = round(1_000_000 * scale), round(200_000 * scale)
    made = fill(bench, waiting=waiting, abandoned=count)
    chosen = random.Random(1).sample(made["waiting"], count // 2)
    with tempfile.TemporaryDirectory() as folder:
        ids = Path(folder) / "ids"
        ids.write_bytes(b"".join(item_id + b"\n" for item_id in chosen))
        state = {"XDG_STATE_HOME": folder}
        removed = timed(rwq_command(bench, "rm", "--yes", "-"), stdin=ids, variables=state)
        longest.look(bench)
        undone = timed(rwq_command(bench, "undo"), variables=state)
        longest.look(bench)
        released = timed(rwq_command(bench, "release", "--all"))
        longest.look(bench)
        assert bench.client.llen(f"{QUEUE}:queue") == waiting + count
    yield _seconds_row(f"rm {count // 2:,} of {waiting:,} waiting, at random", removed.seconds, 20)
    yield _seconds_row(f"undo of these {count // 2:,}", undone.seconds, 20)
    yield _seconds_row(f"release {count:,} beside {waiting:,} waiting", released.seconds, 20)


def delayed(bench: BenchServer, scale: float, longest: Longest) -> Iterator[Row]:
    """Adding for later, listing and promoting, each against adding as many to wait at once."""
    count = round(100_000 * scale)
    key = f"{QUEUE}:delayed"
    seconds: dict[str, list[float]] = {}

    def measure(name: str, *words: str, stdin: Path | None = None) -> None:
        run = timed(rwq_command(bench, *words), stdin=stdin)
        longest.look(bench)
        seconds.setdefault(name, []).append(run.seconds)

    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "lines"
        lines.write_bytes((PAYLOAD + b"\n") * count)
        for _ in range(3):
            bench.empty()
            bench.client.slowlog_reset()
            measure("plain", "add", stdin=lines)
            assert bench.client.llen(f"{QUEUE}:queue") == count
            bench.empty()
            measure("add --delay", "add", "--delay", "1h", stdin=lines)
            assert bench.client.zcard(key) == count
            measure("ls delayed", "ls", "delayed", "-n", "0", "-o", "ids")
            # As if the hour had passed: half of its score is long ago, and the order is the same.
            bench.client.zunionstore(key, {key: 0.5})
            bench.client.slowlog_reset()
            measure("promoting (clean light)", "clean", "light", "--grace", "0")
            assert bench.client.llen(f"{QUEUE}:queue") == count
    each_us = {name: min(taken) / count * 1e6 for name, taken in seconds.items()}
    plain_us = each_us.pop("plain")
    for name in ("add --delay", "ls delayed", "promoting (clean light)"):
        yield Row(
            f"{count:,} delayed items: {name}",
            f"{each_us[name]:.1f} µs each",
            f"adding them to wait at once: {plain_us:.1f} µs each",
            each_us[name] / plain_us,
            1,
        )
    bench.empty()


def page_one(bench: BenchServer, scale: float, longest: Longest) -> Iterator[Row]:
    """The first page of a long queue against that of a short one."""
    many = round(1_000_000 * scale)
    times = max(3, round(15 * min(1.0, scale * 10)))
    medians = []
    commands = {
        name: rwq_command(bench, *name.split(), "-o", "table") for name in ("ls", "leases", "stats")
    }
    for waiting in (100, many):
        fill(bench, waiting=waiting)
        medians.append(alternating_medians(commands, times))
    longest.look(bench)
    for name in commands:
        few_s, many_s = medians[0][name], medians[1][name]
        yield Row(
            f"page one: {name} on {many:,} waiting",
            f"{many_s * 1000:.0f} ms",
            f"on 100: {few_s * 1000:.0f} ms",
            many_s / few_s,
            1.2,
        )


def _seconds_row(name: str, seconds: float, limit_s: float) -> Row:
    return Row(name, f"{seconds:.2f} s", f"limit {limit_s:g} s", seconds / limit_s, 1)


ROWS: dict[str, Callable[[BenchServer, float, Longest], Iterator[Row]]] = {
    "startup": startup,
    "bulk-add": bulk_add,
    "lease-complete": lease_and_complete,
    "complete": complete_in_long_processing,
    "light-clean": light_clean,
    "deep-clean": deep_clean,
    "doctor": doctor,
    "take-away": take_away,
    "delayed": delayed,
    "page-one": page_one,
}
