"""Named servers in `config.toml`: reading them, changing them, and running password commands.

Little is imported here: most runs only need to know that there is no such file.
"""

from collections.abc import Mapping
from pathlib import Path

from rwq_cli.environment import user_directory


def config_path(variables: Mapping[str, str]) -> Path:
    """The file: `$XDG_CONFIG_HOME/rwq/config.toml`, or `~/.config/rwq/config.toml`."""
    return user_directory(variables, "XDG_CONFIG_HOME", ".config") / "rwq" / "config.toml"
