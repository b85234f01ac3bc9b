"""Every sentence about none, one, two and many, of made facts, word for word.

`pytest --inline-snapshot=fix tests/views/test_sentences.py` writes them anew.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from io import BytesIO
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest
from inline_snapshot import external_file

from rwq_cli.commands import clean, doctor
from rwq_cli.core.health import Refusal, ServerStatus
from rwq_cli.core.inspect.rates import Rates
from rwq_cli.core.inspect.thresholds import Level
from rwq_cli.core.model import FLUSHED, MISSED, Item
from rwq_cli.core.repair.clean import Repair
from rwq_cli.core.repair.doctor import Diagnosis
from rwq_cli.core.work.job import Fate
from rwq_cli.environment import Environment
from rwq_cli.output import human
from rwq_cli.output.exposition import Metric, exposition
from rwq_cli.output.tally import OutcomeKind, Tally
from rwq_cli.views import (
    events,
    health,
    history,
    monitoring,
    top,
    working,
)
from rwq_cli.views.counts import Tick
from rwq_cli.views.history import QueueHistory
from rwq_cli.work.notes import Progress, status
from tests.views.facts import NOW_MS, RECORDS, STEPS, in_product, made

SHEETS = Path(__file__).parent / "sheets"
NUMBERS = (0, 1, 2, 1234)


def _progress(step: int) -> Progress:
    progress = Progress()
    progress.counts = {fate: step * (1 + at) for at, fate in enumerate(Fate)}
    progress.running, progress.left = step, (None, 0, 7, 1234)[step]
    progress.is_paused, progress.is_stopping = step in (1, 3), step in (2, 3)
    return progress


def _of_numbers() -> Iterator[object]:
    seconds = (
        0.001,
        0.04,
        0.5,
        0.9,
        1,
        1.25,
        9.94,
        9.95,
        59.9,
        60,
        61,
        299.5,
        3661,
        86_400,
        90_061,
    )
    sizes = (1023, 1024, (1 << 20) - 1, 1 << 20, 1 << 40, 1 << 52)
    for number in (None, 0, *seconds, *(-value for value in seconds), *sizes):
        yield number, *(show(number) for show in (human.duration, human.due, human.rate, human.ago))
        whole = None if number is None else int(number)
        yield human.size(whole), human.count(whole), human.counted(whole or 0, "key")
    values = [({}, 12_345_678_901), ({"queue": b'a"\\\n'}, 0.1 + 0.2), ({}, None)]
    yield exposition([Metric("m_total", "Help.", values, "counter")])


def _of_tallies() -> Iterator[object]:
    for module, name, kind in in_product(OutcomeKind).values():
        words = (*kind.counted, *kind.json_counted, *sorted(kind.failed), "wrong-type")
        for number, is_dry in product(NUMBERS, (False, True)):
            tally = Tally(kind, b"jobs", dry_run=is_dry, where=lambda: " in jobs")
            tally.counts.update({words[0]: number})
            first = tally.summary(), tally.status, tally.successes, tally.is_news
            tally.counts.update(dict.fromkeys(words, number))
            yield module, name, *first, tally.summary(), tally.status, tally.json({}, (), None)


def _of_servers() -> Iterator[object]:
    servers = [made(ServerStatus, step) for step in STEPS]
    for server, refusal in product(servers, (None, *Refusal)):
        yield health.server_in_words(server._replace(refusal=refusal))
        yield health.status_parts(server._replace(refusal=refusal, is_failing=refusal is None))
    yield exposition(health.server_metrics(servers))
    usual = ServerStatus("Valkey 8.1.8", 60, 1 << 20, 1 << 21, persists=True, appends=True)
    for uptime_s, used_bytes in ((59, 1), (60, 1_880_000), (60, 1_900_000)):
        yield health.status_parts(usual._replace(uptime_s=uptime_s, used_bytes=used_bytes))
    yield from (health.status_parts(usual._replace(persists=state)) for state in (False, None))


def _of_checks() -> Iterator[object]:
    checks = RECORDS["check"][1]
    for check, is_absent in product(checks, (False, True)):
        yield monitoring.nagios_line(check, is_absent=is_absent), monitoring.alerts_of(check)
    for number in range(len(checks) + 1):
        unread = {b"q%d" % at: "it has a list" for at in range(number)}
        yield monitoring.nagios_lines(unread, checks[:number], Level.WARNING)
    yield exposition(monitoring.queue_metrics([b"queue-1", b"none"], checks))


def _of_workers() -> Iterator[object]:
    for step, rate in product(STEPS, (0.0, 0.5, 1234.5)):
        yield working.live_line(_progress(step), rate), status(_progress(step))
    yield exposition(working.work_metrics(_progress(2)))
    yield from working.joblog_lines(row.outcome for row in RECORDS["work"][1])


def _of_events() -> Iterator[object]:
    for event, word in product(RECORDS["event"][1], ("lost", "buried", "leased", FLUSHED, MISSED)):
        item_id = None if word in (FLUSHED, MISSED) else event.item_id
        event = event._replace(event=word, item_id=item_id)
        yield from (events.event_line(event, has_queue=has_queue) for has_queue in (False, True))


def _of_top() -> Iterator[object]:
    rows = [made(top.QueueRow, step) for step in STEPS]
    rows[2] = rows[2]._replace(history=range(30))
    quiet = rows[0]._replace(abandoned=0)
    yield [[column.cell(row) for column in top.QUEUE_COLUMNS] for row in rows]
    for trouble in ({}, {"abandoned": 1}, {"is_least": True}, {"next_age_s": 599}):
        yield trouble, top.has_trouble(quiet._replace(**trouble))
    yield top.has_trouble(quiet._replace(sample=quiet.sample._replace(buried=1)))
    for done_per_s in (None, 0.0, 1.0):
        yield top.has_trouble(quiet._replace(next_age_s=600, rates=Rates(None, done_per_s)))
    for column, reverse in product(top.SORT_COLUMNS, (False, True)):
        yield [field.heading for field in top.sort_columns(column, reverse=reverse)]
        yield [row.queue for row in top.sorted_rows(rows, column, reverse=reverse)]
    for number in range(len(rows) + 1):
        yield top.total_row(rows[len(rows) - number :])
    buried = [made(Item, step, at=at) for step in STEPS for at in range(2)]
    for number in range(len(buried) + 1):
        yield (
            top.reason_parts(buried[:number], 7),
            top.reason_parts(buried[:number] * 2, 2 * number),
        )
    yield from (top.state_parts(counts) for counts in RECORDS["counts"][1])


def _of_histories() -> Iterator[object]:
    for values in ([], [0, 0], [0, 1, 4, 8], [1, 1_000_000], [3, None, 0]):
        yield history.sparkline(values)
    entries = RECORDS["history"][1]
    for number in range(1, len(entries) + 1):
        yield history.history_sections(
            QueueHistory(b"jobs", 60_000 * number, [None, *entries[:number]])
        )


def _of_doctor() -> Iterator[object]:
    for step, fix, explains in product(STEPS, (False, True), (False, True)):
        diagnosis = made(Diagnosis, step)
        yield doctor._summary(diagnosis, fix=fix, explains_notes=explains)
        yield doctor._describe_healthy(diagnosis, is_all=fix)


def _of_ticks() -> Iterator[object]:
    for counts, step in product(RECORDS["counts"][1], STEPS):
        tick = Tick(NOW_MS, {counts.queue: made(Rates, step)})
        yield tick.section(counts), tick.time.get(counts)


def _of_services() -> Iterator[object]:
    for number in NUMBERS:
        actions = {(b"jobs", repair): number * at for at, repair in enumerate(Repair)}
        service = SimpleNamespace(
            _actions=actions,
            _rounds=Counter({"jobs": number}),
            _opened=SimpleNamespace(label="jobs"),
        )
        yield clean.RoundsCleaner._status(service)
    servers = [ServerStatus(), ServerStatus(refusal=Refusal.WRITE_ERRORS, node="db:1")]
    with pytest.MonkeyPatch.context() as patched:
        for number in range(3):
            patched.setattr(monitoring, "server_statuses", lambda _, n=number: servers[:n])
            yield monitoring.Scraper.refusal(SimpleNamespace(_connection=None))


SENTENCES = (
    *(_of_numbers, _of_tallies, _of_servers, _of_checks, _of_workers, _of_events, _of_top),
    *(_of_histories, _of_doctor, _of_ticks, _of_services),
)


@pytest.mark.parametrize("sentences", SENTENCES, ids=lambda function: function.__name__)
def test_sentences_are_as_they_were(sentences: Callable[[], Iterator[object]]) -> None:
    text = "".join(f"{sentence}\n" for sentence in sentences())
    assert text == external_file(str(SHEETS / f"{sentences.__name__[1:]}.txt"))


def test_a_rate_is_that_of_the_last_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr, times = BytesIO(), iter((10.0, 14.0))
    environment = Environment({"COLUMNS": "99"}, BytesIO(), BytesIO(), stderr)
    monkeypatch.setattr(working, "monotonic", times.__next__)
    live = working.LiveNotes(environment, names_queues=False, colour=False)
    for done in (2, 8):
        live.progress.counts[Fate.COMPLETED] = done
        live.tick()
    assert b"1.5/s" in stderr.getvalue()
