"""`--quiet` leaves out what is not a result: notes, summaries, progress. Errors remain."""

import io

import pytest

from rwq_cli.cli.connect import open_connection
from rwq_cli.cli.settings import Settings
from rwq_cli.environment import Environment
from tests.conftest import Foreign
from tests.driver import Rwq
from tests.servers import PrivateServer

pytestmark = pytest.mark.usefixtures("slept_s")


def test_a_quiet_verb_prints_its_results_and_names_failures(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    assert rwq("-Q", "complete", "a", "gone", "-o", "ids").as_tuple() == (
        3,
        "a\n",
        "rwq: gone: no such item\n",
    )
    assert rwq("-Q", "complete", "a", "-o", "json").json["missing"] == 1


def test_a_quiet_listing_has_no_footer_and_no_sentence(rwq: Rwq, foreign: Foreign) -> None:
    assert rwq.on_screen("ls", "-Q") == (0, b"")
    foreign.waiting(b"a")
    code, seen = rwq.on_screen("ls", "-Q")
    assert code == 0
    assert b"shown" not in seen


@pytest.mark.parametrize("quiet", [True, False])
def test_a_quiet_run_has_no_progress_line(server: PrivateServer, quiet: bool) -> None:
    environment = Environment({}, io.BytesIO(), io.BytesIO(), io.BytesIO())
    environment.stderr_is_terminal, environment.stdout_is_pipe = True, False
    settings = Settings(environment, {"url": server.url, "quiet": quiet})
    open_connection(settings)
    assert (settings.progress is None) == quiet
