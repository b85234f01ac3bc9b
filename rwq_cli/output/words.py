"""The words for what became of items: in `status`, and as the counts of summaries.

Those of the core are rows of `Status`. The others, which are counts only, or about lines, results
and files, are here.
"""

from typing import NamedTuple

from rwq_cli.core.model import Status


class Word(NamedTuple):
    """A word.

    Attributes:
        infinitive: What a dry run says that it would do; empty if it would do nothing.
        meaning: What it means, for the reference.
    """

    infinitive: str
    meaning: str


WORDS = {
    **{
        status.value: Word(status.infinitive, status.meaning) for status in Status if status.meaning
    },
    "restored": Word("restore", "it was restored"),
    "restored-before": Word("", "it was restored by an earlier run that was interrupted"),
    "in-doubt": Word("", "it was restored although it may have been completed meanwhile"),
    "deleted": Word("delete", "the undo file was deleted"),
    "in-use": Word("", "another rwq uses the undo file"),
    "retry": Word("", "its command failed, and it will be tried again"),
    "rejected": Word(
        "", "`work` gave it up, its record cannot be used, or a key has the wrong type"
    ),
    "lost": Word("", "its lease was lost, or its command itself completed, buried or released it"),
    "empty": Word("", "lines without anything in them (`add`)"),
    "results": Word("", "results of completed items that were restored, or removed by `purge`"),
    "results-already-there": Word("", "results that exist already"),
    "results-rejected": Word("", "results whose key is taken by something else"),
}
