"""Command lines that can be pasted into a shell, with names of any bytes."""

import shlex

from rwq_cli.output.escape import escaped

# The commands that take no ID.
_WITHOUT_ID = ("clean", "doctor")


def command_line(verb: str, queue: bytes, item_id: bytes) -> str:
    """The command line that does this to an item.

    An ID that cannot be an argument, `-` or one that contains NUL, is passed through a pipe.

    Args:
        verb: The command with its options, such as `release --force`.
        queue: The queue's name.
        item_id: The ID; unused if the command takes none.
    """
    command = f"rwq {verb} -q {shell_word(queue)}"
    if verb.split()[0] in _WITHOUT_ID:
        return command
    if item_id == b"-" or b"\0" in item_id:
        octal = "".join(f"\\{byte:03o}" for byte in item_id)
        return f"printf '{octal}\\n' | {command} -"
    return f"{command} {'-- ' if item_id.startswith(b'-') else ''}{shell_word(item_id)}"


def shell_word(raw: bytes) -> str:
    """A word that bash, zsh and ksh read as exactly these bytes, safe to show."""
    shown = escaped(raw)
    if shown.encode() == raw:
        return shlex.quote(shown)
    quoted = []
    for byte in raw:
        character = chr(byte)
        if character in "\\'":
            quoted.append(f"\\{character}")
        elif 0x20 <= byte < 0x7F:
            quoted.append(character)
        else:
            quoted.append(f"\\x{byte:02x}")
    # A hexadecimal digit that follows is not part of \xHH: two digits at most are read.
    return f"$'{''.join(quoted)}'"
