"""Named servers in `config.toml`: reading them, changing them, and running password commands.

Nothing else is imported here: most runs only need to know that there is no such file.
"""

import os
from collections.abc import Mapping
from pathlib import Path


def config_path(variables: Mapping[str, str]) -> Path:
    """The file: `$XDG_CONFIG_HOME/rwq/config.toml`, or `~/.config/rwq/config.toml`."""
    config = variables.get("XDG_CONFIG_HOME", "")
    # The XDG specification says to ignore a relative path.
    if os.path.isabs(config):
        return Path(config, "rwq", "config.toml")
    return Path(variables.get("HOME") or Path.home(), ".config", "rwq", "config.toml")
