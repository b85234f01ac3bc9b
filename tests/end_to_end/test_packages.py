"""The sdist and the wheel: what they hold, and that they are built and installed on their own."""

import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree, ignore_patterns, unpack_archive

import pytest

import rwq_cli
from tests.driver import Rwq
from tests.servers import PrivateServer

pytest.importorskip("hatchling")
pytest.importorskip("pip")

ROOT = Path(__file__).parents[2]
# Not part of the project, and large.
_LEFT_BEHIND = ignore_patterns(
    *(".git", ".venv", "build", "dist", "*.egg-info", "__pycache__", ".*_cache")
)
_BUILD = "import sys; from hatchling import build; build.build_{}(sys.argv[1])"


def run(words: Sequence[str | Path], **more: object) -> str:
    """Run a command; returns what it prints."""
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, **more)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def build(kind: str, source: Path, to: Path) -> Path:
    """Build the `sdist` or the `wheel` of a directory, as pip does, but with what is installed."""
    to.mkdir()
    run([sys.executable, "-c", _BUILD.format(kind), to], cwd=source)
    (made,) = to.iterdir()
    return made


@dataclass(frozen=True)
class Packages:
    """What was built."""

    sdist: Path
    tree: Path
    wheel: Path
    program: Path


pytestmark = pytest.mark.ci


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    place = tmp_path_factory.mktemp("packages")
    copytree(ROOT, place / "project", ignore=_LEFT_BEHIND)
    sdist = build("sdist", place / "project", place / "sdist")
    unpack_archive(sdist, place / "unpacked")
    (tree,) = (place / "unpacked").iterdir()
    wheel = build("wheel", tree, place / "wheel")
    run([sys.executable, "-m", "venv", "--without-pip", place / "venv"])
    python = place / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    run([*pip, "install", "--quiet", "--no-deps", "--no-index", "--no-compile", wheel])
    # The dependencies are those of the tests. Found later than what is installed here.
    (packages,) = (place / "venv").glob("lib/python*/site-packages")
    others = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (packages / "dependencies.pth").write_text("\n".join(others) + "\n")
    return Packages(sdist, tree, wheel, place / "venv" / "bin" / "rwq")


def test_the_sdist_is_the_project(packages: Packages) -> None:
    held = {str(path.relative_to(packages.tree)) for path in packages.tree.rglob("*")}
    folders = {".ci", "benchmarks", "completions", "docs", "rwq_cli", "tests"}
    ours = {
        str(path.relative_to(ROOT))
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {path.partition("/")[0] for path in ours} == folders
    assert ours - held == set()
    assert held >= {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "pyproject.toml"}
    assert [name for name in held if name.endswith(".pyc")] == []


def test_the_wheel_has_the_package_and_nothing_else(packages: Packages) -> None:
    with zipfile.ZipFile(packages.wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        text = archive.read(metadata).decode()
    ours = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "rwq_cli").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert held == ours
    assert {Path(name).suffix for name in held} >= {".lua", ".typed"}
    assert f"\nName: rwq-cli\nVersion: {rwq_cli.__version__}\n" in text
    assert f"\n## [{rwq_cli.__version__}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert "\nLicense-File: LICENSE\n" in text


def test_the_installed_program_works(
    packages: Packages, rwq: Rwq, server: PrivateServer, tmp_path: Path
) -> None:
    variables = {**rwq.variables, "PATH": os.environ["PATH"]}

    def call(*words: str) -> str:
        # Not from the clone, where `rwq_cli` is that of the tests.
        return run([packages.program, *words], cwd=tmp_path, env=variables)

    assert call("--version") == f"rwq {rwq_cli.__version__}\n"
    call("add", "some work", "--id", "1")
    assert call("lease", "-o", "data") == "some work"
    assert call("complete", "1", "-o", "ids") == "1\n"
    assert server.client().dbsize() == 0
    assert call("completion", "bash") == (ROOT / "completions" / "rwq.bash").read_text("utf-8")
