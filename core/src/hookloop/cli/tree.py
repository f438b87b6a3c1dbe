"""A recorded turn as a tree: rounds, what went out and came back, tool runs, what plugins added, limits, writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.cells import cell_len

from hookloop.trace import Traced

from .terminal import counted, fitted, one_line


@dataclass
class Node:
    """A line and what stands below it. `rest` may be shortened to fit; `text` never is."""

    text: str
    rest: str = ""
    style: str = ""
    below: list[Node] = field(default_factory=list)


def turns(trace: Iterable[Traced]) -> list[Node]:
    """One tree for each run of a turn, in the order of the trace; runs that overlap are told apart by their turn."""
    found: dict[str, Node] = {}
    roots: list[Node] = []
    for line in trace:
        if line.kind == "turn_began" or line.turn not in found:
            word = "resumed" if line.data.get("resumed") else "turn"
            found[line.turn] = Node(f"{word} {one_line(line.turn)} of {one_line(line.conversation)}", style="bold")
            roots.append(found[line.turn])
        _add(found[line.turn], line)
    return roots


def drawn(root: Node, width: int) -> Iterator[tuple[str, str]]:
    """The lines of a tree, each with its style, none wider than `width` unless its fixed text is."""
    yield _fitted("", root, width), root.style
    yield from _branches(root, "", width)


def _branches(node: Node, indent: str, width: int) -> Iterator[tuple[str, str]]:
    for at, child in enumerate(node.below, 1):
        last = at == len(node.below)
        yield _fitted(indent + ("└ " if last else "├ "), child, width), child.style
        yield from _branches(child, indent + ("  " if last else "│ "), width)


def _fitted(indent: str, node: Node, width: int) -> str:
    line = f"{indent}{node.text}"
    if not node.rest:
        return line
    room = width - cell_len(line) - 2
    return f"{line}  {fitted(node.rest, room)}" if room > 1 else line


def _add(turn: Node, line: Traced) -> None:
    data = line.data
    if line.kind == "turn_finished":
        _finish(turn, data)
    elif line.kind == "request_sent":
        turn.below.append(_request(data))
    else:
        node = _node(line.kind, data)
        if node is not None:
            _place(turn, data).below.append(node)


def _place(turn: Node, data: Mapping[str, Any]) -> Node:
    """Events belong to the round that is under way; those before the first one to the turn."""
    rounds = [node for node in turn.below if node.text.startswith("round ")]
    return rounds[-1] if rounds else turn


def _request(data: Mapping[str, Any]) -> Node:
    attempt = f" attempt {data['attempt']}" if data["attempt"] > 1 else ""
    new = len(data["messages"])
    size = counted(data["size"], "message") + (f", {new} new" if new < data["size"] else "")
    return Node(f"round {data['round']}{attempt}", f"{one_line(data['provider'])}  {size}")


def _node(kind: str, data: Mapping[str, Any]) -> Node | None:
    make = _KINDS.get(kind)
    return make(data) if make is not None else None


def _reply(data: Mapping[str, Any]) -> Node:
    reply = data["reply"]
    text = "".join(part["text"] for part in reply["content"] if part["type"] == "text")
    calls = sum(part["type"] == "call" for part in reply["content"])
    source = f" by {one_line(data['answered_by'])}" if data["answered_by"] else ""
    facts = [f"{data['seconds']:.2f} s", _usage(reply["usage"]), counted(calls, "call") if calls else ""]
    return Node(f"reply{source} {', '.join(filter(None, facts))}", text, "green")


def _usage(usage: Mapping[str, Any]) -> str:
    read, wrote, cached = usage.get("input"), usage.get("output"), usage.get("cache_read")
    if not read and not wrote:
        return ""
    share = f" ({100 * cached / (read or 1):.0f}% cached)" if cached and read else ""
    return f"{read or 0} tokens in{share}, {wrote or 0} out"


def _tool(data: Mapping[str, Any]) -> Node:
    result = data["result"]
    text = "".join(part.get("text", "") for part in result["content"])
    mark, style = ("✗", "red") if result["is_error"] else ("←", "cyan")
    time = f"{data['seconds']:.2f} s" if data["ran"] else "not run"
    return Node(f"{one_line(data['call']['name'])} {time} {mark}", text, style)


def _contributed(data: Mapping[str, Any]) -> Node:
    origin = data["message"]["origin"]
    text = "".join(part.get("text", "") for part in data["message"]["content"])
    return Node(f"+ {one_line(origin['plugin'])}.{origin['hook']}", text, "magenta")


def _decision(data: Mapping[str, Any]) -> Node:
    return Node(f"! {one_line(data['plugin'])}.{data['hook']} {one_line(data['verdict'])}", data["detail"], "magenta")


def _warned(data: Mapping[str, Any]) -> Node:
    source = ".".join(filter(None, (data["plugin"], data["hook"])))
    return Node(f"warning {one_line(source)}".rstrip(), data["text"], "yellow")


def _failed(data: Mapping[str, Any]) -> Node:
    return Node(f"attempt {data['attempt']} failed ({data['error_kind']})", data["error"], "red")


def _stored(data: Mapping[str, Any]) -> Node:
    return Node(
        f"stored {counted(data['entries'], 'entry')} in {one_line(data['memory'])}", f"version {data['version']}", "dim"
    )


def _discarded(data: Mapping[str, Any]) -> Node:
    return Node("discarded", data["why"], "yellow")


def _limit(data: Mapping[str, Any]) -> Node:
    return Node(f"limit {data['limit']} reached", data["action"], "yellow")


def _cut(data: Mapping[str, Any]) -> Node:
    return Node(f"view cut from {data['before']} to {data['after']} messages", data["why"], "yellow")


def _waits(data: Mapping[str, Any]) -> Node:
    return Node(f"{one_line(data['call']['name'])} waits", data["question"], "yellow")


def _sent(data: Mapping[str, Any]) -> Node:
    return Node("sent in mid-turn", _text(data["message"]))


_KINDS: dict[str, Callable[[Mapping[str, Any]], Node]] = {
    "reply_received": _reply,
    "tool_ended": _tool,
    "contributed": _contributed,
    "decision": _decision,
    "warned": _warned,
    "model_failed": _failed,
    "stored": _stored,
    "reply_discarded": _discarded,
    "limit_reached": _limit,
    "view_cut": _cut,
    "call_suspended": _waits,
    "message_sent": _sent,
}


def _text(message: Mapping[str, Any]) -> str:
    return "".join(part.get("text", "") for part in message["content"])


def _finish(turn: Node, data: Mapping[str, Any]) -> None:
    facts = ", ".join(filter(None, (counted(data["rounds"], "round"), _usage(data["usage"]))))
    reason = f" ({one_line(data['stop_reason'])})" if data["stop_reason"] not in ("", data["status"]) else ""
    turn.below.append(Node(f"{data['status']}{reason}", facts, "bold"))
    if data["error"]:
        turn.below.append(Node("error", data["error"], "red"))
    elif data["text"] and not _replied(turn, data["text"]):
        turn.below.append(Node("answer", data["text"], "green"))


def _replied(turn: Node, text: str) -> bool:
    """Does the last reply say so already?"""
    rounds = [node for node in turn.below if node.text.startswith("round ")]
    replies = [node for node in rounds[-1].below if node.text.startswith("reply")] if rounds else []
    return bool(replies) and replies[-1].rest == text
