"""What hooks return, sorted out: contributions made into marked messages, verdicts checked against the table.

Nothing that a plugin returns reaches history but through here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hookloop_hookspecs import Message, Narrow, Origin, PluginError, Reply, Stop, Text, ToolResult
from hookloop_hookspecs.results import Unencodable, encode_result
from hookloop_hookspecs.verdicts import ALLOWED, VERDICTS, Answer, Deny, Replace, Retry, Suspend, Verdict
from hookloop_hookspecs.wellformed import fault

from .effects import Returned
from .history import clean, clean_text

ALONE = (str, Message, *VERDICTS, Narrow)
"""What an implementation may return; all else that can be listed is a list of such."""


@dataclass(slots=True)
class Ruling:
    """A verdict and whose it is."""

    plugin: str
    version: str
    hook: str
    verdict: Verdict

    def origin(self, turn: str, round: int) -> Origin:
        """The mark of a message that this verdict made."""
        return Origin("plugin", self.plugin, self.version, self.hook, turn, round)


@dataclass(slots=True)
class Merged:
    """All that the implementations of one hook returned."""

    messages: list[Message] = field(default_factory=list)
    system: list[str] = field(default_factory=list)
    rulings: list[Ruling] = field(default_factory=list)
    narrows: list[tuple[str, Narrow]] = field(default_factory=list)

    def first(self, *kinds: type) -> Ruling | None:
        """The first verdict of the strongest of these kinds."""
        for kind in kinds:
            for ruling in self.rulings:
                if isinstance(ruling.verdict, kind):
                    return ruling
        return None

    def conflicts(self, hook: str) -> list[str]:
        """Where plugins change the same thing in different ways, in words."""
        if len(self.rulings) + len(self.narrows) < 2:
            return []
        found: list[str] = []
        replaced = [(one.plugin, one.verdict.value) for one in self.rulings if isinstance(one.verdict, Replace)]
        _differ(found, hook, "replace the same thing", replaced)
        for name in ("tool_choice", "settings", "model"):
            values = [(giver, getattr(one, name)) for giver, one in self.narrows]
            _differ(found, hook, f"choose {name}", [(giver, value) for giver, value in values if value is not None])
        return found

    @property
    def strongest(self) -> Ruling | None:
        """The verdict that stands, `Replace` aside."""
        return self.first(Stop, Deny, Suspend, Answer, Retry)


def _differ(found: list[str], hook: str, what: str, values: list[tuple[str, object]]) -> None:
    if len(values) > 1 and any(value != values[0][1] for _, value in values):
        givers = " and ".join(repr(giver) for giver, _ in values)
        found.append(f"plugins {givers} {what} in {hook}, and differ; order decides")


def merge(hook: str, returned: Iterable[Returned], turn: str, round: int) -> Merged:
    """Sort out what the implementations of `hook` returned. Raises `PluginError` for what the contract does not allow."""
    merged = Merged()
    for one in returned:
        origin = Origin("plugin", one.plugin, one.version, hook, turn, round)
        for item in _items(one, hook):
            _take(merged, one, hook, item, origin)
    return merged


def _items(one: Returned, hook: str) -> Iterable[object]:
    value = one.value
    if value is None:
        return ()
    if isinstance(value, ALONE):
        return (value,)
    if isinstance(value, Iterable) and not isinstance(value, bytes | bytearray | Mapping):
        return value
    raise PluginError(one.plugin, hook, f"returned {_a(value)}; {_may_return(hook)}")


def _take(merged: Merged, one: Returned, hook: str, item: object, origin: Origin) -> None:
    if isinstance(item, str) and hook in CONTRIBUTE:
        merged.messages.append(Message("user", clean((Text(item),)), origin, "", hook == "recall"))
        return
    if isinstance(item, Narrow):
        item = _narrow(item)
    if trouble := fault(item):
        raise PluginError(one.plugin, hook, f"returned a {type(item).__name__} that cannot be used: {trouble}")
    match item:
        case Message() if hook in CONTRIBUTE:
            _message(merged, one, hook, item, origin)
        case Narrow() if hook == "before_round":
            merged.narrows.append((one.plugin, item))
        case Stop() | Deny() | Suspend() | Answer() | Retry() | Replace() if isinstance(item, ALLOWED.get(hook, ())):
            merged.rulings.append(Ruling(one.plugin, one.version, hook, item))
        case _:
            raise PluginError(one.plugin, hook, f"returned {_a(item)}; {_may_return(hook)}")


def _narrow(narrow: Narrow) -> Narrow:
    """The narrowing with its names in a tuple, where somebody gave a list or a set."""
    names: Any = narrow.tools
    return replace(narrow, tools=tuple(names)) if isinstance(names, list | set | frozenset) else narrow


CONTRIBUTE = frozenset(
    {"recall", "before_turn", "before_round", "after_reply", "after_tool", "next_instructions", "review_answer"}
)


def _message(merged: Merged, one: Returned, hook: str, message: Message, origin: Origin) -> None:
    if message.role == "system" and hook == "before_turn":
        merged.system.append(message.text)
        return
    if message.role != "user" or message.calls or message.results:
        raise PluginError(
            one.plugin, hook, f"contributed a message with the role {message.role!r}; plugins contribute user messages"
        )
    ephemeral = message.ephemeral or hook == "recall"
    merged.messages.append(
        Message("user", clean(message.content), origin, clean_text(message.key), ephemeral),
    )


def _may_return(hook: str) -> str:
    kinds = [kind.__name__ for kind in ALLOWED.get(hook, ())]
    words = ["text", "messages"] if hook in CONTRIBUTE else []
    words += ["Narrow"] if hook == "before_round" else []
    return f"{hook} may return " + ", ".join([*words, *kinds, "None"])


def _a(value: object) -> str:
    return f"{type(value).__name__} {value!r:.80}"


def whole_reply(reply: Reply) -> Reply:
    """The reply with its parts in a tuple, where somebody gave a list."""
    content: Any = reply.content
    return replace(reply, content=tuple(content)) if isinstance(content, list) else reply


def reply_of(value: Any, old: Reply | None, plugin: str, hook: str) -> Reply:
    """The reply that a plugin's `Replace` or `Answer` stands for: text, or a whole `Reply`."""
    if isinstance(value, str):
        usage = old.usage if old is not None else Reply().usage
        return Reply((Text(value),), "end", usage, old.model if old is not None else "")
    if not isinstance(value, Reply):
        raise PluginError(plugin, hook, f"gave {_a(value)} for a reply; give text or a Reply")
    reply = whole_reply(value)
    if trouble := fault(reply):
        raise PluginError(plugin, hook, f"gave a Reply that cannot be used: {trouble}")
    return replace(reply, usage=old.usage) if old is not None and reply.usage == Reply().usage else reply


def result_of(value: Any, old: ToolResult, plugin: str, hook: str) -> ToolResult:
    """The result that a plugin's `Replace` or `Answer` stands for; it stays the result of the same call."""
    try:
        encoded = encode_result(value)
    except Unencodable as error:
        raise PluginError(plugin, hook, f"gave a result that cannot be encoded: {error}") from error
    return replace(old, content=encoded.content, is_error=encoded.is_error, private=encoded.private)
