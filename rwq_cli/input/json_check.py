"""Checks that data is JSON."""

from msgspec import DecodeError

from rwq_cli.output.json_text import check_utf8, value_of


def json_error(data: bytes) -> str | None:
    """Why data is not JSON; None if it is, or if it is nested too deeply to tell."""
    try:
        value_of(data)
        check_utf8(data)
    except DecodeError as error:
        reason = str(error).removeprefix("JSON is malformed: ")
        return reason[:1].lower() + reason[1:]
    except UnicodeDecodeError:
        return "not UTF-8"
    except RecursionError:
        pass
    return None
