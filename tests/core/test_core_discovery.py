"""What is installed, and what comes of loading it, with real entry points."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hookloop.discovery import PLUGINS, Found, available, load, load_one, survey
from hookloop_hookspecs import ConfigError

if TYPE_CHECKING:
    from tests.conftest import Distribute

GOOD = "class Plugin:\n    pass\n"


def points(**names: str) -> dict[str, dict[str, str]]:
    return {PLUGINS: {name.replace("_", "-"): value for name, value in names.items()}}


def test_what_is_installed_is_known_without_importing_it(distribute: Distribute) -> None:
    distribute("hl-one", points(hl_one="hl_mod_one:Plugin"), {"hl_mod_one": "raise SystemError"}, version="2.5")
    assert available(PLUGINS)["hl-one"] == Found("hl-one", PLUGINS, "hl_mod_one:Plugin", "hl-one", "2.5")
    assert "hl_mod_one" not in sys.modules


def test_only_what_is_named_is_imported(distribute: Distribute) -> None:
    modules = {"hl_mod_a": GOOD, "hl_mod_b": GOOD}
    distribute("hl-two", points(hl_a="hl_mod_a:Plugin", hl_b="hl_mod_b:Plugin"), modules)
    objects, problems = load(PLUGINS, ["hl-b"])
    assert [getattr(value, "__module__", "") for value in objects.values()] == ["hl_mod_b"]
    assert problems == []
    assert "hl_mod_a" not in sys.modules


BROKEN = {
    "import": ("import hl_not_there", "ModuleNotFoundError: No module named 'hl_not_there'"),
    "exit": ("raise SystemExit(3)", "its module tried to end the program (SystemExit: 3)"),
    "assertion": ("assert 1 == 2, 'odd'", "AssertionError: odd"),
    "value": ("raise ValueError('bad')", "ValueError: bad"),
    "syntax": ("def", "SyntaxError: invalid syntax (hl_mod_bad.py, line 1)"),
    "skip": ("import pytest\npytest.skip('no server', allow_module_level=True)", "Skipped: no server"),
    "base": ("class Odd(BaseException): ...\nraise Odd('x')", "Odd: x"),
    "generator": ("raise GeneratorExit('x')", "GeneratorExit: x"),
    "secret": ("raise OSError('no postgresql://u:hunter2@h')", "OSError: no postgresql://u:[redacted]@h"),
    "attribute": ("x = 1", "AttributeError: module 'hl_mod_bad' has no attribute 'Plugin'"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_one_is_a_problem_and_hides_no_other(distribute: Distribute, kind: str) -> None:
    source, cause = BROKEN[kind]
    names = points(hl_bad="hl_mod_bad:Plugin", hl_good="hl_mod_good:Plugin")
    distribute("hl-mixed", names, {"hl_mod_bad": source, "hl_mod_good": GOOD}, version="0.3")
    objects, problems = load(PLUGINS, ["hl-bad", "hl-good"])
    assert list(objects) == ["hl-good"]
    assert [str(problem) for problem in problems] == [f"plugin 'hl-bad' (hl-mixed 0.3): {cause}"]
    assert problems[0].error is not None


def test_an_interrupt_is_not_swallowed(distribute: Distribute) -> None:
    distribute("hl-stop", points(hl_stop="hl_mod_stop:Plugin"), {"hl_mod_stop": "raise KeyboardInterrupt"})
    with pytest.raises(KeyboardInterrupt):
        load(PLUGINS, ["hl-stop"])


def test_a_name_that_two_distributions_claim_is_a_problem(distribute: Distribute) -> None:
    distribute("hl-first", points(hl_same="hl_mod_x:Plugin"), {"hl_mod_x": GOOD}, version="1.0")
    distribute(
        "hl-second", points(hl_same="hl_mod_y:Plugin", hl_own="hl_mod_y:Plugin"), {"hl_mod_y": GOOD}, version="2.0"
    )
    objects, problems = load(PLUGINS, ["hl-same", "hl-own"])
    assert list(objects) == ["hl-own"]
    text = str(problems[0])
    assert "hl-first 1.0 (hl_mod_x:Plugin)" in text
    assert "hl-second 2.0 (hl_mod_y:Plugin)" in text
    assert "uninstall one of them" in text
    assert "hl_mod_x" not in sys.modules
    assert [problem.name for problem in survey(PLUGINS)[1]] == ["hl-same"]


def test_one_distribution_seen_twice_is_one(distribute: Distribute, monkeypatch: pytest.MonkeyPatch) -> None:
    site = distribute("hl-once", points(hl_once="hl_mod_once:Plugin"), {"hl_mod_once": GOOD})
    monkeypatch.syspath_prepend(str(site) + "/")
    assert load(PLUGINS, ["hl-once"])[1] == []


@pytest.mark.parametrize("wanted", ["==9.9", ">=0.2", "<0.1"])
def test_one_that_needs_another_contract_is_not_imported(distribute: Distribute, wanted: str) -> None:
    requires = ["requests>=2", f"hookloop_hookspecs{wanted}"]
    distribute("hl-new", points(hl_new="hl_mod_new:Plugin"), {"hl_mod_new": GOOD}, requires=requires)
    objects, (problem,) = load(PLUGINS, ["hl-new"])
    assert objects == {}
    assert problem.cause == f"needs hookloop-hookspecs{wanted}; 0.1.0 is installed"
    assert "hl_mod_new" not in sys.modules


@pytest.mark.parametrize(
    ("requirement", "cause"),
    [
        ("hookloop-hookspecs>=99; extra == 'x'", None),
        ("hookloop-hookspecs>=99; python_version < '3'", None),
        ("hookloop-hookspecs>=99; python_version > '3'", "needs hookloop-hookspecs>=99; 0.1.0 is installed"),
        ("hookloop_hookspecs[more]<0.1; extra != 'x'", "needs hookloop-hookspecs<0.1; 0.1.0 is installed"),
    ],
)
def test_only_what_holds_here_is_asked_of_the_contract(
    distribute: Distribute, requirement: str, cause: str | None
) -> None:
    distribute("hl-if", points(hl_if="hl_mod_if:Plugin"), {"hl_mod_if": GOOD}, requires=[requirement])
    objects, problems = load(PLUGINS, ["hl-if"])
    assert [problem.cause for problem in problems] == ([cause] if cause else [])
    assert bool(objects) is (cause is None)


def test_the_contract_of_today_is_accepted(distribute: Distribute) -> None:
    requires = ["hookloop-hookspecs==0.1.0", 'tomli; python_version < "3.11"', "not a requirement ((("]
    distribute("hl-now", points(hl_now="hl_mod_now:Plugin"), {"hl_mod_now": GOOD}, requires=requires)
    assert load(PLUGINS, ["hl-now"])[1] == []


@pytest.mark.parametrize(
    ("group", "name", "words"),
    [
        ("hookloop.memory", "memry", "memory scheme 'memry': is not known; did you mean 'memory'?"),
        ("hookloop.commands", "wub", "command 'wub': is not known"),
    ],
)
def test_an_unknown_name_gets_the_nearest(group: Any, name: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_one(group, name)
    assert str(caught.value).startswith(words)


def test_a_name_of_ours_that_is_not_installed_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(Path(pytest.__file__).parents[1] / "nowhere")])
    with pytest.raises(ConfigError, match=r"provider prefix 'deepseek': is not installed; pip install hookloop-openai"):
        load_one("hookloop.providers", "deepseek")


def test_the_problem_has_the_error_as_its_cause(distribute: Distribute) -> None:
    distribute("hl-cause", points(hl_cause="hl_mod_cause:Plugin"), {"hl_mod_cause": "1 / 0"})
    with pytest.raises(ConfigError, match=r"hl-cause 1\.0.*ZeroDivisionError") as caught:
        load_one(PLUGINS, "hl-cause")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
