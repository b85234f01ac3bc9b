"""Faults in what scripts and people meet: codes, formats, questions, undo, workers."""

from tests.mutants.faults.fault import Fault

COMMANDS: tuple[Fault, ...] = (
    # The command line: exit codes.
    Fault(
        "partial-is-done",
        "A script is told that all is well though a part of its batch failed.",
        "rwq_cli/exit_codes.py",
        "return ExitStatus.PARTIAL if successes else ExitStatus.NO",
        "return ExitStatus.OK if successes else ExitStatus.NO",
    ),
    Fault(
        "server-error-is-no",
        "A script takes an unreachable server for the answer no.",
        "rwq_cli/exit_codes.py",
        "ServerError: ExitStatus.SERVER",
        "ServerError: ExitStatus.NO",
    ),
    Fault(
        "critical-is-warning",
        "Monitoring wakes nobody: check answers CRITICAL with the code of WARNING.",
        "rwq_cli/exit_codes.py",
        "CRITICAL = 2, ",
        "CRITICAL = 1, ",
    ),
    Fault(
        "failure-after-work-is-no",
        "A script is told that nothing was removed though the undo file's disk filled up later.",
        "rwq_cli/exit_codes.py",
        'return ExitStatus.PARTIAL if is_answer and "is_partial"',
        'return ExitStatus.PARTIAL if False and "is_partial"',
    ),
    # Streams.
    Fault(
        "output-is-lost",
        "A slow reader of a pipe that does not block gets a part of an export, and exit 0.",
        "rwq_cli/descriptors.py",
        "except BlockingIOError:\n                    wait_for(self.fileno(), select.POLLOUT)",
        "except BlockingIOError:\n                    return None",
    ),
    Fault(
        "pause-is-the-end",
        "What follows a pause of a pipe that does not block is not added, and exit 0.",
        "rwq_cli/descriptors.py",
        "while (piece := super().read(size)) is None:\n            wait_for(",
        'while (piece := super().read(size)) is None:\n            return b""\n            wait(',
    ),
    # Formats.
    Fault(
        "id-is-not-first",
        "cut -f1 of a listing is not the ID any more.",
        "rwq_cli/views/items.py",
        'order = {"id": -1, "queue": 1}',
        'order = {"queue": 1}',
    ),
    Fault(
        "tabs-in-a-column",
        "A tab in an ID or a payload shifts the columns of a line.",
        "rwq_cli/output/field.py",
        "    if isinstance(value, bytes):\n        return escaped(value)",
        '    if isinstance(value, bytes):\n        return value.decode("utf-8", "replace")',
    ),
    Fault(
        "field-left-out",
        "A JSON field that does not apply is left out, and jq reads another.",
        "rwq_cli/output/field.py",
        "                target[name] = escaped(value)",
        "                if value is not None:\n                    target[name] = escaped(value)",
    ),
    Fault(
        "bytes-as-latin-1",
        "Data that are not UTF-8 are another text in JSON, and cannot be put back.",
        "rwq_cli/output/field.py",
        'return {name: raw.decode("utf-8"), f"{name}_b64": None}',
        'return {name: raw.decode("latin-1"), f"{name}_b64": None}',
    ),
    Fault(
        "bidi-reaches-the-terminal",
        "An ID can turn the direction of a terminal's text, and deceive who reads it.",
        "rwq_cli/output/escape.py",
        'frozenset({"Cc", "Cf",',
        'frozenset({"Cc",',
    ),
    # Questions.
    Fault(
        "enter-is-yes",
        "Return at the question whether to remove the items removes them.",
        "rwq_cli/cli/confirm.py",
        '.strip().lower() in ("y", "yes")',
        '.strip().lower() in ("", "y", "yes")',
    ),
    Fault(
        "any-name-will-do",
        "Ten thousand items are gone whatever is typed for the queue's name.",
        "rwq_cli/cli/confirm.py",
        'answer.rstrip("\\r\\n") == name',
        "bool(answer)",
    ),
    Fault(
        "read-only-context-writes",
        "A verb that changes things runs in a context that is read-only.",
        "rwq_cli/cli/settings.py",
        "if self._manual.may_change(self._options) and self.is_read_only:",
        "if False:",
    ),
    Fault(
        "all-without-asking",
        "rm without IDs or options takes the whole queue.",
        "rwq_cli/cli/choosing.py",
        "if not (used or mine_only):",
        "if False:",
    ),
    Fault(
        "password-in-an-error",
        "An error shows the password of a URL.",
        "rwq_cli/core/server/urls.py",
        'user, colon, _ = credentials.partition(":")',
        'user, colon, _MASK = credentials.partition(":")',
    ),
    # Undo.
    Fault(
        "undo-at-the-end",
        "undo puts back what was next behind everything that was added since.",
        "rwq_cli/undo/run.py",
        "front=is_front,",
        "front=False,",
    ),
    Fault(
        "undo-without-a-question",
        "undo brings back 20,000 items, and nobody was asked.",
        "rwq_cli/commands/undo.py",
        "if dry_run or (is_confirmed(settings, yes=yes) and not doubts):",
        "if True:",
    ),
    # Editing.
    Fault(
        "edit-shifts-lines",
        "A command of edit --lines that drops a line gives each item the data of the next.",
        "rwq_cli/input/editor.py",
        "if len(new_lines) != len(lines):",
        "if not (new_lines := [*new_lines, *lines]):",
    ),
    # Work.
    Fault(
        "work-counts-what-it-puts-back",
        "A command that exits with 75, for later, uses up its item's attempts.",
        "rwq_cli/work/commands.py",
        "NOT_RUN = 75,",
        "NOT_RUN = 76,",
    ),
    Fault(
        "work-never-gives-up",
        "A failing item is tried for ever, whatever --retries says.",
        "rwq_cli/core/work/job.py",
        "        return attempt > self.retries\n",
        "        return False\n",
    ),
)
