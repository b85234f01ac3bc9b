"""Ending the commands of a worker that was killed: nobody would renew their leases."""

from rwq_cli.service.death_watch import DeathWatch

# $1 is the entry of the environment by which commands are found, $2 how long they get, seconds.
# Neither the shell nor grep has that entry.
_SCRIPT = r"""
trap '' HUP INT QUIT TERM TSTP
read -r _
send() {
    found=
    for file in $(grep -lsF -e "$1" /proc/[0-9]*/environ); do
        read -r stat 2>/dev/null <"${file%environ}stat" || continue
        set -- "$1" "$2" ${stat##*) }
        [ "$3" = Z ] && continue
        found=1
        kill -s "$2" -- "-$5" 2>/dev/null
    done
}
send "$1" TERM
send "$1" CONT
[ "$found" ] || exit
sleep "$2"
send "$1" KILL
"""


def watch_leftovers(mark: bytes, kill_after_s: float) -> DeathWatch:
    """Send SIGTERM, and later SIGKILL, to the commands if this process is killed and cannot.

    They and what they have started are found by the mark in their environment, so that starting one
    costs nothing more; without /proc, they are not. When the watch is closed, what commands have
    left running goes on.
    """
    words = (b"rwq-leftovers", mark, b"%g" % kill_after_s)
    return DeathWatch((b"/bin/sh", b"-c", _SCRIPT.encode(), *words))
