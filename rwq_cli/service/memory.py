"""A process that runs for long has its code in memory: an upgrade in place must not change it."""

from importlib import import_module
from pkgutil import walk_packages

import rwq_cli.core
from rwq_cli.core.lua import all_files, load_script


def load_everything() -> None:
    """Load the modules and scripts that are otherwise loaded when they are first used."""
    for module in walk_packages(rwq_cli.core.__path__, "rwq_cli.core."):
        import_module(module.name)
    for file in all_files():
        room, _, name = file.partition("/")
        if room == "ops":
            load_script(name)
