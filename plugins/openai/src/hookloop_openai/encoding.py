"""From a request to a body, and to the assembly that reads its answer: the choice between the two APIs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from hookloop_hookspecs import Message, ModelRequest, ToolSpec

from .assembly import Assembly, Context
from .chat_assemble import ChatAssembly
from .chat_body import chat_body, chat_tools
from .chat_encode import ChatHistory
from .errors import Failing
from .identity import Identity
from .profile import Api
from .responses_assemble import ResponsesAssembly
from .responses_body import responses_body, responses_tools
from .responses_encode import ResponsesHistory
from .usage import Prices
from .values import Json, dumps, sequence


@dataclass(slots=True)
class Remembered:
    """What of an epoch is written already: the history, how many messages it holds, the last of them, and the tools."""

    history: ChatHistory | ResponsesHistory
    count: int = 0
    last: Message | None = None
    specs: tuple[ToolSpec, ...] = ()
    tools: list[bytes] = field(default_factory=list)

    def fits(self, request: ModelRequest) -> bool:
        """True where the request's messages extend the ones that are written."""
        if self.count == 0:
            return True
        return len(request.messages) >= self.count and request.messages[self.count - 1] == self.last

    def written(self, request: ModelRequest, fields: Json) -> bytes:
        """The whole body, of which only what is new is written now."""
        more = fields.pop("tools", None)
        parts = [dumps(fields)[1:-1]]
        if request.tools or more:
            parts.append(b'"tools":[%s]' % b",".join([*self.tools, *map(dumps, sequence(more))]))
        if self.history.KEY not in fields:
            parts.append(b'"%s":[%s]' % (self.history.KEY.encode(), b",".join(self.history.written(request.system))))
        return b"{%s}" % b",".join(parts)


def encoded(request: ModelRequest, identity: Identity, api: Api, failing: Failing, *, stream: bool) -> bytes:
    """The JSON body of a request. Raises `ProviderError` for one that no server could take."""
    _check_choice(request, failing)
    try:
        known = remembered(request, identity, api)
        make = responses_body if api == "responses" else chat_body
        return known.written(request, make(request, identity, stream=stream))
    except Exception as error:
        raise failing.raised(error) from error


def _check_choice(request: ModelRequest, failing: Failing) -> None:
    choice, names = request.tool_choice, [spec.name for spec in request.tools]
    if choice in ("auto", "none") or choice in names or (choice == "required" and names):
        return
    have = f"the tools are {', '.join(names)}" if names else "there are no tools"
    raise failing.error(f"the tool choice {choice!r} cannot be met: {have}", "invalid")


def remembered(request: ModelRequest, identity: Identity, api: Api) -> Remembered:
    """The request's messages and tools, written; of an epoch that is known only those that are new."""
    place = f"{identity.tag}/{identity.family}/{api}/{identity.vision}"
    known: Remembered | None = request.memo.get(place)
    if known is None or not known.fits(request):
        known = request.memo[place] = Remembered((ResponsesHistory if api == "responses" else ChatHistory)(identity))
    if known.specs != request.tools:
        known.specs = request.tools
        make = responses_tools if api == "responses" else chat_tools
        known.tools = [dumps(tool) for tool in make(request.tools, identity.profile)]
    total = len(request.messages)
    if total > known.count:
        known.history.extend(request.messages[number] for number in range(known.count, total))
        known.count = total
        known.last = request.messages[total - 1]
    return known


def assembly_for(
    request: ModelRequest, identity: Identity, api: Api, prices: Prices | None
) -> Callable[[str], Assembly]:
    """What makes the assembly of an answer, given the answer's request id."""
    return partial(_assembly, identity, api, prices, (request.conversation, request.turn, request.round))


def _assembly(identity: Identity, api: Api, prices: Prices | None, seed: object, request_id: str) -> Assembly:
    context = Context(identity, request_id, prices, seed)
    return ResponsesAssembly(context) if api == "responses" else ChatAssembly(context)
