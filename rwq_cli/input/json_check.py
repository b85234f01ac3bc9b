"""Whether data are JSON."""

from msgspec import DecodeError, Raw
from msgspec.json import Decoder

_skim = Decoder(Raw).decode


def json_error(data: bytes) -> str | None:
    """Why data are not JSON; None if they are, or are nested too deeply to tell."""
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
