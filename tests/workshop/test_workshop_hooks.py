"""The contract documents every hook, and every hook is implemented by a test."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hookloop_hookspecs import hooks
from hookloop_hookspecs.verdicts import ALLOWED

ROOT = Path(__file__).parents[2]
MAKERS = ("core", "support")
"""Where plugins are made from the names of hooks."""
HOOKS: dict[str, Callable[..., Any]] = {
    name: value for name, value in vars(hooks).items() if hasattr(value, "hookloop_spec")
}


@cache
def implemented() -> frozenset[str]:
    """The hooks that tests implement: functions under `@hookimpl`, and names from which the engine's tests make them."""
    found = set()
    for file in (ROOT / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(map(_marks, node.decorator_list)):
                found.add(node.name)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and file.parent.name in MAKERS:
                found.add(node.value)
    return frozenset(found)


def _marks(decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return "hookimpl" in ast.unparse(target)


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_says_when_what_it_returns_and_what_a_failure_does(name: str) -> None:
    doc = inspect.getdoc(HOOKS[name]) or ""
    purpose, _, rest = doc.partition("\n")
    assert re.match(r"[A-Z].+[.\"]$", purpose), "the first line is the purpose, a sentence"
    sections = re.findall(r"^([A-Z][a-z ]+):", rest, re.MULTILINE)
    wanted = ["When", "Arguments", "Returns", "Not called", "Failure"]
    assert {"When", "Returns", "Failure"} <= set(sections)
    assert [section for section in wanted if section in sections] == sections


@pytest.mark.parametrize("name", HOOKS)
def test_each_argument_of_a_hook_is_explained(name: str) -> None:
    said = f"{hooks.__doc__}\n{HOOKS[name].__doc__}"
    arguments = set(inspect.signature(HOOKS[name]).parameters) - {"request"}  # its type says all
    assert [argument for argument in sorted(arguments) if f"`{argument}`" not in said] == []


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_is_implemented_in_a_test(name: str) -> None:
    assert name in implemented()


def test_the_table_of_verdicts_names_hooks() -> None:
    assert set(ALLOWED) <= set(HOOKS)
