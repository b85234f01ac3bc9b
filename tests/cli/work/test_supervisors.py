"""`--notify` and `--listen`, as of the cleaning process."""

from tests.cli.work.test_exits import script
from tests.conftest import Foreign
from tests.driver import TIMEOUT_S, Rwq, next_line
from tests.service.managers import Manager, manager as manager


def test_systemd_is_notified_and_a_command_cannot(
    rwq: Rwq, foreign: Foreign, manager: Manager
) -> None:
    foreign.waiting(b"1")
    variables = {"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "100000"}
    text = 'echo "${NOTIFY_SOCKET-none} ${WATCHDOG_USEC-none}"'
    worker = rwq.start("work", "--notify", *script(text), variables=variables)
    assert next_line(worker.stdout) == b"none none\n"
    missing = {b"READY", b"WATCHDOG", b"STATUS"}
    while missing:
        missing.discard(manager.received().partition(b"=")[0])
    worker.terminate()
    while (message := manager.received()) != b"STOPPING=1":
        assert message.startswith((b"WATCHDOG=1", b"STATUS="))
    assert worker.wait(TIMEOUT_S) == 0
