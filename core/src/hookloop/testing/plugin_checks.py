"""Conformance of a hook plugin: what every plugin must do, whichever hooks it has.

All at once: `print(check_plugin(MyPlugin))`. In a test suite with pytest, one test for each check::

    @pytest.mark.parametrize("check", plugin_checks.CHECKS, ids=str)
    def test_my_plugin(check):
        plugin_checks.verify(check, MyPlugin)

The plugin meets real turns with a scripted model: ordinary and long ones, and those in which tools, the model, the memory
or the caller fail. A plugin that is about other tools than `edit(path)` gets them with `tools` and `calls`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from unittest import SkipTest

from hookloop.discovery import implemented
from hookloop.engine.effects import Returned
from hookloop.engine.merge import merge
from hookloop.hooks import STORED
from hookloop_hookspecs import Message, PluginError, Window
from hookloop_hookspecs.tools import Toolset, as_tool

from .history import assert_growing, assert_valid_history
from .plugin_play import Played, Situation
from .plugin_subject import ROUNDS, PluginSubject
from .report import Report, judged
from .watched import Call, Watched

Rule: TypeAlias = Callable[[PluginSubject], "str | None"]
WAYS: Final = [(way, transport) for way in ("run", "stream", "arun", "astream") for transport in ("stream", "whole")]
OBSERVE: Final = frozenset({"after_turn", "on_event", "close", "persist_memory"})
"""Hooks that return nothing."""
GROWTH: Final = 1.75
"""How much more a plugin may say in the last quarter of a long turn than in the second. What repeats all that it said
before comes to 2.2."""


@dataclass(frozen=True, slots=True)
class Check:
    """One named check."""

    name: str
    rule: Rule

    def __str__(self) -> str:
        return self.name


def is_a_plugin(subject: PluginSubject) -> None:
    """It can be made and registered: its hooks are marked, known, and take arguments that they have."""
    assert not subject.fault, subject.fault


def works(subject: PluginSubject) -> None:
    """In an ordinary turn no hook raises, and the turn comes to its end."""
    played = subject.ordinary
    _no_failure(played.watched.failed, "an ordinary turn")
    for outcome in played.outcomes:
        endless = outcome is not None and outcome.status == "limit"
        assert not endless, "the turn never ended: the plugin kept asking for more rounds, until a limit stopped it"
    for error in played.errors:
        assert _explained(played.watched.calls), f"the turn failed: {error}"


def _explained(calls: Iterable[Call]) -> bool:
    """Is a failed turn the matter of other checks?"""
    try:
        for call in calls:
            _legal(call)
            if call.hook == "register_tools":
                _no_tool_twice(call)
    except (AssertionError, PluginError):
        return True
    return False


def leaves_its_arguments_alone(subject: PluginSubject) -> None:
    """No hook writes to what it is given."""
    for situation, call in subject.all():
        assert not call.changed, f"{call.hook} changed its argument {call.changed[0]!r} ({situation.name})"


def returns_what_it_may(subject: PluginSubject) -> None:
    """Each hook returns what the contract lets it return."""
    for situation, call in subject.all():
        try:
            _legal(call)
        except PluginError as error:
            raise AssertionError(f"{error} ({situation.name})") from error


def _legal(call: Call) -> None:
    if call.hook in OBSERVE:
        assert call.value is None, f"{call.hook} returned {call.value!r:.80}; it returns nothing"
    elif call.hook == "select_context":
        fits = call.value is None or isinstance(call.value, Window)
        assert fits, f"select_context returned {call.value!r:.80}; it may return a Window or None"
    elif call.hook == "register_tools":
        for _ in _tool_names(call.value):
            pass
    else:
        merge(call.hook, [Returned("checked", "", call.value)], "t", 1)


def _tool_names(value: Any) -> Iterable[str]:
    """The names of the tools that `register_tools` returned; a toolset's are not known before it is opened."""
    if value is None or isinstance(value, Toolset):
        return
    if isinstance(value, Iterable) and not isinstance(value, str):
        for item in value:
            yield from _tool_names(item)
        return
    fits = callable(value) or hasattr(value, "spec")
    assert fits, f"register_tools returned {value!r:.80}; give tools, functions or a toolset"
    yield as_tool(value).name


def is_stable_over_many_rounds(subject: PluginSubject) -> None:
    """In a turn of many equal rounds it does not say ever more, and what was sent stays as it was."""
    played = subject.long()
    assert_growing(played.requests)
    size = Counter[int]()
    for message in played.contributions:
        size[message.origin.round] += len(message.text)
    quarter = ROUNDS // 4
    early, late = (sum(size[at + n] for n in range(1, quarter + 1)) for at in (quarter, 3 * quarter))
    grows = early > 0 and late > GROWTH * early
    assert not grows, (
        f"it says ever more: {early} characters in rounds {quarter + 1} to {2 * quarter}, "
        f"{late} in rounds {3 * quarter + 1} to {ROUNDS}"
    )


def adds_nothing_twice(subject: PluginSubject) -> None:
    """Nothing is contributed twice in one round, and no tool is given twice."""
    for played in (subject.ordinary, subject.long()):
        texts = Counter((m.origin.turn, m.origin.round, m.text) for m in played.contributions)
        twice = next((text for (_, _, text), count in texts.items() if count > 1), None)
        hooks = sorted({message.origin.hook for message in played.contributions if message.text == twice})
        assert twice is None, f"{' and '.join(hooks)} added the same text twice in one round: {twice!r:.80}"
        for call in played.watched.of("register_tools"):
            _no_tool_twice(call)


def _no_tool_twice(call: Call) -> None:
    try:
        names = Counter(_tool_names(call.value))
    except (AssertionError, TypeError, ValueError):
        return  # what is no tool is the matter of another check
    twice = next((name for name, count in names.items() if count > 1), None)
    assert twice is None, f"register_tools gives the tool {twice!r} twice"


def is_the_same_in_all_ways(subject: PluginSubject) -> str | None:
    """run, stream, arun and astream, with a streaming provider and with one that is not, come to the same."""
    situation = subject.situations[0]
    first, again = subject.play(situation), subject.play(situation)
    look = _exactly if _exactly(first) == _exactly(again) else _roughly
    for way, transport in WAYS:
        other = subject.play(situation, way, transport)
        assert look(other) == look(first), _difference(look(first), look(other), f"{way}, transport {transport}")
    return (
        None if look is _exactly else "its texts differ from run to run, so only their number and places were compared"
    )


def _exactly(played: Played) -> list[object]:
    requests = [_plain(request.messages) for request in played.requests]
    texts = [outcome and (outcome.status, outcome.text) for outcome in played.outcomes]
    return [*requests, *texts, *played.errors]


def _roughly(played: Played) -> list[object]:
    requests = [[(role, hook) for role, hook, _ in _plain(request.messages)] for request in played.requests]
    return [*requests, *(outcome and outcome.status for outcome in played.outcomes)]


def _plain(messages: Iterable[Message]) -> list[tuple[str, str, object]]:
    return [(message.role, message.origin.hook, message.content) for message in messages]


def _difference(first: Sequence[object], other: Sequence[object], way: str) -> str:
    pairs = zip(first, other, strict=False)
    at = next((at for at, (one, two) in enumerate(pairs) if one != two), min(len(first), len(other)))
    one, two = (repr(side[at]) if at < len(side) else "nothing" for side in (first, other))
    start = next((n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), 0)
    start = max(0, start - 40)
    return f"{way} differs from run: …{two[start : start + 100]}… in place of …{one[start : start + 100]}…"


def survives_failures(subject: PluginSubject) -> None:
    """Where tools, the model, the memory or the caller fail, no hook of it raises, and the history stays valid."""
    sick = {call.hook for call in subject.ordinary.watched.failed}
    for situation in subject.situations[1:]:
        played = subject.played(situation)
        _no_failure([call for call in played.watched.failed if call.hook not in sick], situation.name)
        _valid(played, situation)


def _valid(played: Played, situation: Situation) -> None:
    for outcome in played.outcomes:
        if outcome is not None and outcome.status != "suspended":
            try:
                assert_valid_history(outcome)
            except AssertionError as error:
                raise AssertionError(f"{situation.name}: {error}") from error


def _no_failure(failed: Iterable[Call], where: str) -> None:
    for call in failed:
        raise AssertionError(f"{call.hook} raised {type(call.error).__name__} in {where}: {call.error}")


def tells_its_time(subject: PluginSubject) -> str:
    """Each hook of it is asked in some turn, and its time for a call is told; how long that is, is not judged."""
    spent: dict[str, list[float]] = {hook: [] for hook in _own_hooks(subject.ordinary.watched)}
    if not spent:
        raise SkipTest("it only wraps the hooks of others")
    for call in (*(call for _, call in subject.all()), *subject.long().watched.calls):
        spent[call.hook].append(call.seconds)
    for hook, times in spent.items():
        assert times, f"{hook} is never asked, so nothing is known of it: {_why_never(hook)}"
    return ", ".join(f"{hook} {1e6 * sum(times) / len(times):.0f} µs" for hook, times in sorted(spent.items()))


def _own_hooks(watched: Watched) -> list[str]:
    return [hook for hook in implemented(watched) if not getattr(watched, hook).hookloop_impl.get("wrapper")]


def _why_never(hook: str) -> str:
    if hook in STORED:
        return "only memories store; offer it under hookloop.memory"
    return "all turns end before it; give `tools`, `calls` or `deps` with which they come to it"


CHECKS: Final = tuple(
    Check(rule.__name__, rule)
    for rule in (
        is_a_plugin,
        works,
        leaves_its_arguments_alone,
        returns_what_it_may,
        is_stable_over_many_rounds,
        adds_nothing_twice,
        is_the_same_in_all_ways,
        survives_failures,
        tells_its_time,
    )
)


def verify(
    check: Check, make: Callable[[], Any], *, tools: Sequence[Any] = (), calls: Sequence[Any] = (), deps: Any = None
) -> str | None:
    """Run one check, from code that is not async.

    Arguments: `make` gives a plugin of its own each time it is called; `tools` are added to those of the turns, `calls`
    to what the model calls in the ordinary turn (`call("lint", {…})`); `deps` is given to the turns. Raises
    `AssertionError` where the plugin fails, and `unittest.SkipTest` where there is nothing to look at.
    """
    return check.rule(PluginSubject(make, tools, calls, deps))


def check_plugin(
    make: Callable[[], Any], *, tools: Sequence[Any] = (), calls: Sequence[Any] = (), deps: Any = None
) -> Report:
    """Run all checks (see `verify`) and report what came of each."""
    subject = PluginSubject(make, tools, calls, deps)
    return Report(tuple(judged(check.name, lambda check=check: check.rule(subject)) for check in CHECKS))  # type: ignore[misc]  # the default binds it


__all__ = ["CHECKS", "Check", "check_plugin", "verify"]
