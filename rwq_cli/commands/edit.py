"""`rwq edit`: change the data of items, in an editor, from a file or by a command."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, compress
from typing import Annotated, NamedTuple

from rwq_cli.cli.choosing import Choice, selects
from rwq_cli.cli.confirm import Declined, confirm, is_confirmed
from rwq_cli.cli.connect import make_command_lines, open_queue
from rwq_cli.cli.reports import CHANGED_MEANWHILE, OUTCOME_FIELDS, make_outcome_kind
from rwq_cli.commands import ExitStatus, InvalidArgument, Settings, command, escaped, option
from rwq_cli.commands.undoing import Undo
from rwq_cli.core.batches import FLUSH, Flush, in_batches
from rwq_cli.core.errors import RwqError, WrongType
from rwq_cli.core.inspect.listing import Chosen
from rwq_cli.core.inspect.places import read_items
from rwq_cli.core.inspect.selection import ITEMS
from rwq_cli.core.items.restore import Edit, edit_items
from rwq_cli.core.model import OutcomeBatch, Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.state.expected import Expected, with_data
from rwq_cli.core.state.snapshots import ItemSnapshot, Skipped
from rwq_cli.environment import raising_on_terminate
from rwq_cli.input.editor import LINES_MAX, Draft, EditCommand, Refused, run_editor
from rwq_cli.input.streams import read_payload
from rwq_cli.output.escape import escaped_text
from rwq_cli.output.json_text import json_error
from rwq_cli.output.records import Output
from rwq_cli.output.tally import NAMED_FAILURES
from rwq_cli.views.command_lines import shell_word

_KIND = make_outcome_kind(Status.SET, (Status.MISSING,))
_KIND = _KIND._replace(failed=_KIND.failed | {"rejected"})
# How many IDs are looked up together, if they are named.
_NAMED_MAX = 100_000
# An editor that ends so soon has opened a window, and left the file to it.
_AT_ONCE_S = 0.1
_NO_WAIT = (
    "rwq: the editor returned at once; if it opens a window, use its option to wait, as in "
    "EDITOR='code --wait'; what you save there now is lost"
)
# How many items are read together if the command runs once for each.
_RUN_ITEMS = 500


class EditOptions(NamedTuple):
    """Where the new data come from: the options of the command; without any, an editor."""

    settings: Settings
    file: Annotated[str | None, option("-f, --file FILE", "The new data; - is stdin.")] = None
    run: Annotated[
        str | None, option("--run COMMAND", "A shell command: data on stdin, new data on stdout.")
    ] = None
    lines: Annotated[
        bool, option("--lines", f"The command gets up to {LINES_MAX:,} items at once, a line each.")
    ] = False
    allow_empty: Annotated[
        bool, option("--allow-empty", "If the command writes nothing, the data is empty.")
    ] = False


@command(
    record=OUTCOME_FIELDS,
    ok="done, even if nothing was changed",
    no="nothing was written",
    excludes=["--run --file"],
    needs={"--lines": "--run", "--allow-empty": "--run"},
)
@selects(ITEMS)
def edit(settings: Settings, choice: Choice, options: EditOptions) -> ExitStatus:
    """Edit the data of an item in $VISUAL, else $EDITOR, else vi; or take it from a file or stdin,
    byte for byte; or run a command on the data of each chosen item. Items keep their place,
    lease and state. Data that has changed meanwhile is kept. A final newline that was added is not
    written. The old data is written to an undo file first.

    rwq edit -q jobs 4f2a9c
    rwq edit -q jobs --where tenant.id=3 --lines --run 'jq -c .tenant.id=4'
    rwq edit -q jobs 4f2a9c -f fixed.json
    rwq show -q jobs 4f2a9c -o data | sed s/htp:/http:/ | rwq edit -q jobs 4f2a9c -f -
    EDITOR='code --wait' rwq edit -q jobs 4f2a9c
    """
    choice = choice if options.run is not None else _single(choice)
    queue = open_queue(settings)
    editing, undo = _Editing(options, choice, queue), Undo(settings, queue, "edit")
    reasons = {} if options.run else {Status.CHANGED: CHANGED_MEANWHILE}
    # As PID 1, too, which needs a handler to end at SIGTERM.
    with raising_on_terminate(replaces=True), _keeping_drafts(settings, editing.drafts):
        with undo.report(
            _KIND,
            dry_run=choice.dry_run,
            reasons=reasons,
            extra=dict if options.run is None else lambda: {"rejected": editing.rejected},
            rejected=editing.refusals,
        ) as out:
            items = choice.choose(queue, "run a command on the data of {}", only_many=True)
            out.report_all(
                edit_items(queue, editing.edits(items, out), undo, dry_run=choice.dry_run)
            )
            editing.confirm_lossy(out.tally.counts)
            lossy = chain.from_iterable(editing.lossy.values())
            out.report_all(edit_items(queue, lossy, undo, dry_run=choice.dry_run))
        editing.end_drafts(out.tally.counts)
        return out.finish(undo_file=undo.name)


class _Editing:
    """The edits of one run.

    Attributes:
        drafts: The files that an editor had, by ID.
        lossy: Edits to be asked about, by what the question says. They wait until the end, where
            one question covers all of one kind.
        rejected: How many items a command refused.
        refusals: The reasons for the first of them.
    """

    def __init__(self, options: EditOptions, choice: Choice, queue: WorkQueue) -> None:
        self._options, self._choice, self._queue = options, choice, queue
        self._settings = settings = options.settings
        variables = settings.environment.variables
        self._command = EditCommand(
            options.run or "", options.lines, options.allow_empty, variables, set()
        )
        self.drafts: dict[bytes, Draft] = {}
        self.lossy: dict[str, list[Edit]] = {}
        self.rejected, self.refusals = 0, list[str]()
        context = settings.asking_context
        is_confirmed = choice.yes and (context is None or not context.protection_level)
        self._asks = not (choice.dry_run or is_confirmed)

    def edits(self, selected: Chosen, out: Output) -> Iterator[Edit | Flush]:
        """Yield the edits as the items are read, and FLUSH about once a second."""
        queue, clock = self._queue, self._queue.clock
        queue.connection.set_no_touch()
        flushed_s = clock.monotonic()
        items_max = LINES_MAX if self._options.lines else _RUN_ITEMS
        for ids in in_batches(selected.ids, items_max=_NAMED_MAX):
            skipped = Skipped()
            items = chain.from_iterable(read_items(queue, ids, skipped))
            for number, batch in enumerate(in_batches(items, items_max=items_max)):
                if not number:
                    queue.progress.begin("editing", len(ids))
                for edit in self._edits_of(batch, selected.expected, out):
                    yield edit
                    if clock.monotonic() - flushed_s > 1:
                        yield FLUSH
                        flushed_s = clock.monotonic()
            if skipped.wrong_keys and self._options.run is None:
                raise WrongType.of(skipped.wrong_keys[0])
            out.report_batch(OutcomeBatch.all_of(skipped.missing, Status.MISSING))
            out.report_batch(OutcomeBatch.all_of(skipped.wrong_types, Status.WRONG_TYPE))

    def _edits_of(
        self, items: Sequence[ItemSnapshot], expected: Expected, out: Output
    ) -> Iterator[Edit]:
        """Yield the edits of items that are as they were chosen, and that need no question."""
        verdicts = [_is_as_chosen(item, expected) for item in items]
        as_chosen = list(compress(items, verdicts))
        changed = [item.item_id for item, same in zip(items, verdicts, strict=True) if not same]
        out.report_batch(OutcomeBatch.all_of(changed, Status.CHANGED))
        progress = self._queue.progress
        progress.advance(len(changed))
        for item, data in zip(as_chosen, self._revised(as_chosen), strict=True):
            if isinstance(data, Refused):
                self._reject(item, data.reason)
            elif self._asks and (loss := _loss(item, data, self._options.allow_empty)):
                self.lossy.setdefault(loss, []).append((item, data))
            else:
                yield item, data
                continue
            progress.advance(1)

    def _revised(self, items: Sequence[ItemSnapshot]) -> Iterator[bytes | Refused]:
        # The items were read earlier, so that later changes are not overwritten.
        if self._options.run is not None:
            yield from self._command.run([item.data for item in items])
            return
        for item in items:
            if self._options.file is not None:
                yield read_payload(self._settings.environment, self._options.file)
                continue
            draft = self.drafts[item.item_id] = _draft(self._settings, self._queue, item)
            self._queue.progress.hide()
            began_s = self._queue.clock.monotonic()
            run_editor(self._settings.environment, draft.path)
            if not draft.is_changed and self._queue.clock.monotonic() - began_s < _AT_ONCE_S:
                self._settings.environment.note(_NO_WAIT)
            yield draft.read()

    def _reject(self, item: ItemSnapshot, reason: str) -> None:
        self.rejected += 1
        if self.rejected <= NAMED_FAILURES:
            line = f"{escaped(item.item_id)}: {escaped_text(reason)}"
            self.refusals.append(line)
            if not self._settings.output.is_machine_readable:
                self._settings.environment.error(f"rwq: {line}; left as it is")

    def confirm_lossy(self, counts: Mapping[str, int]) -> None:
        """Ask about each kind of lossy edits."""
        for loss, edits in self.lossy.items():
            if is_confirmed(self._settings, yes=self._choice.yes):
                continue
            error = json_error(edits[0][1]) if edits[0][1] else None
            note, name = f" ({error})" if error else "", escaped(self._queue.name)
            try:
                confirm(self._settings, loss, len(edits), name, note=note)
            except Declined as declined:
                if done := counts["set"]:
                    declined.message = f"declined after {done:,} edits; no more are made"
                raise

    def end_drafts(self, counts: Mapping[str, int]) -> None:
        """Delete the file of an editor, or say where it is if its text was not written."""
        for item_id, draft in self.drafts.items():
            if counts["unchanged"] or (counts["set"] and not self._choice.dry_run):
                draft.delete()
            else:
                is_missing = "missing" in counts
                _name_draft(self._settings, self._queue, item_id, draft, is_missing=is_missing)


def _single(choice: Choice) -> Choice:
    if choice.from_stdin:
        raise InvalidArgument(
            "one ID is needed, and - reads any number from stdin",
            "use --run, or change them one by one",
        )
    ids = [item_id for item_id in choice.listed_ids or () if not isinstance(item_id, Flush)]
    if len(ids) != 1:
        raise InvalidArgument("one ID is needed", "--run changes the data of several items")
    return choice._replace(listed_ids=iter(ids))


def _is_as_chosen(item: ItemSnapshot, expected: Expected) -> bool:
    states, tokens = expected.states, expected.tokens
    has_data = tokens is None or with_data(tokens[item.item_id], item.data) is not None
    return has_data and (states is None or item.state in states)


def _loss(item: ItemSnapshot, data: bytes, allows_empty: bool) -> str | None:
    """Describe for a question how an edit would spoil good data; return None if it would not."""
    if item.data and not data:
        if allows_empty:
            return None
        # As happens if an input fails.
        return "replace the data with nothing in {}"
    if json_error(data) is not None and json_error(item.data) is None:
        return "replace JSON with data that is not JSON in {}"
    return None


def _draft(settings: Settings, queue: WorkQueue, item: ItemSnapshot) -> Draft:
    try:
        is_text = "\0" not in item.data.decode()
    except UnicodeDecodeError:
        is_text = False
    if not is_text:
        lines = make_command_lines(settings, queue.connection)
        show_line = lines.of_item("show -o data", queue.name, item.item_id)
        raise InvalidArgument(
            f"the data of {escaped(item.item_id)} is binary",
            f"see {show_line}, and rwq edit -f FILE",
        )
    return Draft(item.data, item.item_id, ".json" if json_error(item.data) is None else "")


def _name_draft(
    settings: Settings, queue: WorkQueue, item_id: bytes, draft: Draft, *, is_missing: bool
) -> None:
    path = os.fsencode(draft.path)
    lines = make_command_lines(settings, queue.connection)
    again = lines.of_item(f"edit -f {shell_word(path)}", queue.name, item_id)
    if is_missing:
        words = f"add --format raw --id {shell_word(item_id)} -f {shell_word(path)}"
        again = lines.of_queue(words, queue.name)
    settings.environment.error(f"rwq: your text is in {escaped(path)}; to write it: {again}")


@contextmanager
def _keeping_drafts(settings: Settings, drafts: Mapping[bytes, Draft]) -> Iterator[None]:
    """On an error, name the file with the edited text, or delete it if it is unchanged."""
    try:
        yield
    except BaseException as error:
        for draft in drafts.values():
            where = f"your text is in {draft.path}"
            if not draft.is_changed:
                draft.delete()
            elif isinstance(error, RwqError):
                error.hint = f"{error.hint}; {where}" if error.hint else where
            else:
                settings.environment.error(f"rwq: {where}")
        raise
