"""`rwq edit`: change the data of items, in an editor, from a file or by a command."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Annotated

from rwq_cli.cli.choosing import Choice, selects
from rwq_cli.cli.confirm import Declined, confirm, is_confirmed
from rwq_cli.cli.connect import command_lines, open_queue
from rwq_cli.cli.outcomes import CHANGED_MEANWHILE, OUTCOME_FIELDS, kind_of
from rwq_cli.commands import ExitStatus, InvalidArgument, Settings, command, escaped, option
from rwq_cli.commands.undoing import Undo
from rwq_cli.core.batches import FLUSH, Flush, in_batches
from rwq_cli.core.errors import RwqError, WrongType
from rwq_cli.core.inspect.listing import Chosen
from rwq_cli.core.inspect.selection import ITEMS
from rwq_cli.core.items.bulk import read_items
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
from rwq_cli.output.outcomes import NAMED_FAILURES
from rwq_cli.views.command_lines import shell_word

_KIND = kind_of(Status.SET, (Status.MISSING,))
_KIND = _KIND._replace(failed=_KIND.failed | {"rejected"})
# How many IDs are looked up together, if they are named.
_NAMED_MAX = 100_000
# How many items are read together if the command runs once for each.
_RUN_ITEMS = 500


@command(record=OUTCOME_FIELDS, ok="done, even if nothing was changed", no="nothing was written")
@selects(ITEMS)
def edit(
    settings: Settings,
    choice: Choice,
    file: Annotated[str | None, option("-f, --file FILE", "The new data; - is stdin.")] = None,
    run: Annotated[
        str | None, option("--run COMMAND", "A shell command: data on stdin, new data on stdout.")
    ] = None,
    lines: Annotated[
        bool, option("--lines", f"The command gets up to {LINES_MAX:,} items at once, a line each.")
    ] = False,
) -> ExitStatus:
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
    if run is not None and file is not None:
        raise InvalidArgument.both("--run", "--file")
    if lines and run is None:
        raise InvalidArgument("--lines needs --run", "give a command that writes a line per item")
    if run is None:
        choice = _one(choice)
    environment, yes, dry_run, rejected = settings.environment, choice.yes, choice.dry_run, 0
    command = EditCommand(run or "", lines, environment.variables, set())
    queue, context = open_queue(settings), settings.asking_context
    drafts: dict[bytes, Draft] = {}
    asks = not (dry_run or (yes and (context is None or not context.protection_level)))
    undo = Undo(settings, queue, "edit")
    # Edits to be asked about wait until the end, where one question covers them all.
    held: dict[str, list[Edit]] = {}

    def refuse(item: ItemSnapshot, reason: str) -> None:
        nonlocal rejected
        rejected += 1
        if rejected <= NAMED_FAILURES:
            line = f"{escaped(item.item_id)}: {escaped_text(reason)}"
            out.rejected = [*out.rejected, line]
            if not settings.output.is_machine_readable:
                environment.error(f"rwq: {line}; left as it is")

    def revised(items: Sequence[ItemSnapshot]) -> Iterator[bytes | Refused]:
        # The items were read earlier, so that later changes are not overwritten.
        if run is not None:
            yield from command.run([item.data for item in items])
        elif file is not None:
            yield read_payload(environment, file)
        else:
            (item,) = items
            draft = drafts[item.item_id] = _draft(settings, queue, item)
            queue.progress.hide()
            run_editor(environment, draft.path)
            yield draft.read()

    def edits(chosen: Chosen) -> Iterator[Edit | Flush]:
        """Yield the edits as the items are read, and FLUSH about once a second."""
        queue.connection.set_no_touch()
        flushed_s, progress = queue.clock.monotonic(), queue.progress
        items_max = LINES_MAX if lines else _RUN_ITEMS
        for ids in in_batches(chosen.ids, items_max=_NAMED_MAX):
            skipped = Skipped()
            read = chain.from_iterable(read_items(queue, ids, skipped))
            for number, items in enumerate(in_batches(read, items_max=items_max)):
                if not number:
                    progress.begin("editing", len(ids))
                same, changed = list[ItemSnapshot](), list[bytes]()
                for item in items:
                    if _is_as_chosen(item, chosen.expected):
                        same.append(item)
                    else:
                        changed.append(item.item_id)
                out.rows(OutcomeBatch.all_of(changed, Status.CHANGED))
                progress.advance(len(changed))
                for item, data in zip(same, revised(same), strict=True):
                    if isinstance(data, Refused):
                        refuse(item, data.reason)
                        progress.advance(1)
                    elif asks and (what := _loses(item, data)):
                        held.setdefault(what, []).append((item, data))
                        progress.advance(1)
                    else:
                        yield item, data
                    if queue.clock.monotonic() - flushed_s > 1:
                        yield FLUSH
                        flushed_s = queue.clock.monotonic()
            if skipped.wrong_keys and run is None:
                raise WrongType.of(skipped.wrong_keys[0])
            out.rows(OutcomeBatch.all_of(skipped.missing, Status.MISSING))
            out.rows(OutcomeBatch.all_of(skipped.wrong_types, Status.WRONG_TYPE))

    # As PID 1, too, which needs a handler to end at SIGTERM.
    with raising_on_terminate(replaces=True), _kept(settings, drafts):
        reasons = {} if run else {Status.CHANGED: CHANGED_MEANWHILE}
        with undo.outcomes(_KIND, dry_run=dry_run, reasons=reasons) as out:
            if run is not None:
                out.extra = lambda: {"rejected": rejected}
            chosen = choice.choose(queue, "run a command on the data of {}", only_many=True)
            out.all(edit_items(queue, edits(chosen), undo, dry_run=dry_run))
            try:
                _confirm(settings, queue, held, yes=yes)
            except Declined as error:
                if done := out.counts["set"]:
                    error.message = f"declined after {done:,} edits; no more are made"
                raise
            asked = chain.from_iterable(held.values())
            out.all(edit_items(queue, asked, undo, dry_run=dry_run))
        for item_id, draft in drafts.items():
            if out.counts["unchanged"] or (out.counts["set"] and not dry_run):
                draft.delete()
            else:
                _name_draft(settings, queue, item_id, draft, is_missing="missing" in out.counts)
        return out.finish(undo_file=undo.name)


def _one(choice: Choice) -> Choice:
    if choice.from_stdin:
        raise InvalidArgument(
            "one ID is needed, and - means IDs on stdin", "use --run, or change them one by one"
        )
    named = [item_id for item_id in choice.named or () if not isinstance(item_id, Flush)]
    if len(named) != 1:
        raise InvalidArgument("one ID is needed", "--run changes the data of several items")
    return choice._replace(named=iter(named))


def _is_as_chosen(item: ItemSnapshot, expected: Expected) -> bool:
    states, tokens = expected.states, expected.tokens
    has_data = tokens is None or with_data(tokens[item.item_id], item.data) is not None
    return has_data and (states is None or item.state in states)


def _loses(item: ItemSnapshot, data: bytes) -> str | None:
    """Describe for a question how an edit would spoil good data; return None if it would not."""
    if item.data and not data:
        # As happens if an input fails.
        return "replace the data with nothing in {}"
    if json_error(data) is not None and json_error(item.data) is None:
        return "replace JSON with data that is not JSON in {}"
    return None


def _confirm(
    settings: Settings, queue: WorkQueue, held: Mapping[str, Sequence[Edit]], *, yes: bool
) -> None:
    for what, lossy in held.items():
        if not is_confirmed(settings, yes=yes):
            error = json_error(lossy[0][1]) if lossy[0][1] else None
            note = f" ({error})" if error else ""
            confirm(settings, what, len(lossy), escaped(queue.name), note=note)


def _draft(settings: Settings, queue: WorkQueue, item: ItemSnapshot) -> Draft:
    try:
        is_text = "\0" not in item.data.decode()
    except UnicodeDecodeError:
        is_text = False
    if not is_text:
        lines = command_lines(settings, queue.connection)
        shown = lines.of_item("show -o data", queue.name, item.item_id)
        raise InvalidArgument(
            f"the data of {escaped(item.item_id)} is binary", f"see {shown}, and rwq edit -f FILE"
        )
    return Draft(item.data, item.item_id, ".json" if json_error(item.data) is None else "")


def _name_draft(
    settings: Settings, queue: WorkQueue, item_id: bytes, draft: Draft, *, is_missing: bool
) -> None:
    path = os.fsencode(draft.path)
    lines = command_lines(settings, queue.connection)
    again = lines.of_item(f"edit -f {shell_word(path)}", queue.name, item_id)
    if is_missing:
        words = f"add --format raw --id {shell_word(item_id)} -f {shell_word(path)}"
        again = lines.of_queue(words, queue.name)
    settings.environment.error(f"rwq: your text is in {escaped(path)}; to write it: {again}")


@contextmanager
def _kept(settings: Settings, drafts: Mapping[bytes, Draft]) -> Iterator[None]:
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
