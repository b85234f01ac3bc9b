"""What `show` says of the findings about one item."""

import re

import pytest

from rwq_cli.core.repair.findings import Code
from rwq_cli.views.item_remedies import ITEM_REMEDIES, ItemRemedy
from rwq_cli.views.remedies import REMEDIES
from tests.item_cases import ITEM_CASES


def test_every_finding_about_an_item_is_explained() -> None:
    about_items = {code for case in ITEM_CASES.values() for code in case.findings}
    assert about_items <= {code.value for code in ITEM_REMEDIES}


@pytest.mark.parametrize(("code", "remedy"), ITEM_REMEDIES.items())
def test_its_sentences_are_singular(code: Code, remedy: ItemRemedy) -> None:
    for sentence in remedy:
        assert re.fullmatch(r"[A-Z].*\.", sentence)
        assert not re.search(r"\b(items|IDs|them|their|they)\b", sentence, re.IGNORECASE)
    assert code in REMEDIES
