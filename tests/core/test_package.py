"""The core as a package: what it offers, how it reports errors, and what it leaves to its users."""

import ast
import re
from pathlib import Path

import rwq_cli.core
from rwq_cli.core import errors

MODULES = sorted(Path(rwq_cli.core.__file__).parent.rglob("*.py"))


def test_it_neither_prints_nor_exits() -> None:
    for module in MODULES:
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(node, ast.Name | ast.Attribute):
                name = node.id if isinstance(node, ast.Name) else node.attr
                assert name not in {"print", "input", "exit", "quit", "_exit"}, module
            elif isinstance(node, ast.Import):
                assert "sys" not in {alias.name for alias in node.names}, module


def test_everything_that_it_offers_can_be_imported() -> None:
    for name in rwq_cli.core.__all__:
        assert hasattr(rwq_cli.core, name), name


def test_every_error_has_a_code_of_its_own() -> None:
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.RwqError)
    ]
    codes = [kind.code for kind in kinds]
    assert len(set(codes)) == len(codes) > 10
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", code) for code in codes)
