"""Whether data is JSON."""

from msgspec import DecodeError, Raw
from msgspec.json import Decoder

_skim = Decoder(Raw).decode


def json_error(data: bytes) -> str | None:
    """Why data is not JSON; None if it is, or if it is nested too deeply to tell."""
    try:
        _skim(data)
        data.decode()
    except DecodeError as error:
        reason = str(error).removeprefix("JSON is malformed: ")
        return reason[:1].lower() + reason[1:]
    except UnicodeDecodeError:
        return "not UTF-8"
    except RecursionError:
        pass
    return None
