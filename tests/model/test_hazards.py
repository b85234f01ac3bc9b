"""`docs/upstream.md` tells what happens: each of its listings is played on a real server."""

from pathlib import Path

import pytest
import redis

from tests.model.hazards import HAZARDS, Hazard, played

_PAGE = (Path(__file__).parents[2] / "docs" / "upstream.md").read_text("utf-8")


@pytest.mark.parametrize("hazard", HAZARDS, ids=lambda hazard: hazard.name)
def test_the_page_shows_the_shortest_way_as_a_server_plays_it(
    raw: redis.Redis, hazard: Hazard
) -> None:
    _, _, section = _PAGE.partition(f"\n## {hazard.name}\n")
    _, _, listing = section.partition("```text\n")
    assert listing.partition("```")[0].splitlines() == list(played(raw, hazard))


def test_the_page_shows_nothing_else() -> None:
    assert _PAGE.count("```text\n") == len(HAZARDS)
