"""The contract documents every hook, and every hook is implemented by a test that makes it do something."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hookloop_hookspecs import hooks
from hookloop_hookspecs.verdicts import ALLOWED

ROOT = Path(__file__).parents[2]
BY_KEYWORD = frozenset({"Hooked", "plugin"})
"""What makes a plugin of functions, each given under its hook's name."""
BY_NAME = frozenset({"once", "at_first", "raising", "hooked", "as_hook"})
"""What makes a hook of a function, or of an answer; the hook's name comes first."""
HOOKS: dict[str, Callable[..., Any]] = {
    name: value for name, value in vars(hooks).items() if hasattr(value, "hookloop_spec")
}


@cache
def implemented() -> frozenset[str]:
    """The hooks that tests implement."""
    files = (ROOT / "tests").rglob("*.py")
    return frozenset(name for file in files for name in implementations(file.read_text("utf-8")))


def implementations(source: str) -> Iterator[str]:
    """The names under which a source implements hooks, by functions that do something."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _decorated(node)
        elif isinstance(node, ast.Call):
            yield from _made(node)


def _decorated(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    marks = [mark for mark in node.decorator_list if _called(mark) == "hookimpl"]
    if marks and not all(map(_says_nothing, node.body)):
        yield _specname(marks[0]) or node.name


def _made(node: ast.Call) -> Iterator[str]:
    maker, first = _called(node), node.args[0] if node.args else None
    if maker in BY_KEYWORD:
        yield from (keyword.arg for keyword in node.keywords if keyword.arg)
    elif maker in BY_NAME and isinstance(first, ast.Constant):
        yield str(first.value)


def _called(node: ast.expr) -> str:
    """The last name of what is called, or of what decorates."""
    target = node.func if isinstance(node, ast.Call) else node
    return target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""


def _specname(mark: ast.expr) -> str:
    keywords = mark.keywords if isinstance(mark, ast.Call) else []
    values = [keyword.value for keyword in keywords if keyword.arg == "specname"]
    return str(values[0].value) if values and isinstance(values[0], ast.Constant) else ""


def _says_nothing(statement: ast.stmt) -> bool:
    """Is it a docstring, `...` or `pass`?"""
    lone = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return lone or isinstance(statement, ast.Pass)


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


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("@hookimpl\ndef close(self): self.closed = True", ["close"]),
        ("@hookimpl(tryfirst=True)\nasync def recall(self): return self.facts", ["recall"]),
        ("@hookimpl(specname='close')\ndef ends(self): self.closed = True", ["close"]),
        ("Hooked(before_round=lambda: 'x')", ["before_round"]),
        ("scenarios.once('recall', 'a fact')", ["recall"]),
        ("def close(self): self.file.close()", []),
        ("@hookimpl\ndef close(self): ...", []),
        ("@hookimpl\ndef close(self):\n    'Close.'\n    pass", []),
        ("assert play['close'] == recall('close')", []),
        ("print('close', close=1)", []),
    ],
)
def test_only_what_implements_a_hook_counts(source: str, found: list[str]) -> None:
    assert list(implementations(source)) == found
