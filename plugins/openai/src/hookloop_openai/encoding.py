"""From a request to a body, and to the assembly that reads its answer: the choice between the two APIs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from hookloop_hookspecs import Message, ModelRequest

from .assembly import Assembly, Context
from .chat_assemble import ChatAssembly
from .chat_body import chat_body
from .chat_encode import ChatHistory
from .errors import Failing
from .identity import Identity
from .profile import Api
from .responses_assemble import ResponsesAssembly
from .responses_body import responses_body
from .responses_encode import ResponsesHistory
from .usage import Prices
from .values import Json


@dataclass(slots=True)
class Remembered:
    """What of an epoch is encoded: the history, how many messages it holds, and the last of them."""

    history: ChatHistory | ResponsesHistory
    count: int = 0
    last: Message | None = None

    def fits(self, request: ModelRequest) -> bool:
        """True where the request's messages extend the ones that are encoded."""
        here = self.count == 0 or (len(request.messages) >= self.count)
        return here and (self.count == 0 or request.messages[self.count - 1] == self.last)


def encoded(request: ModelRequest, identity: Identity, api: Api, failing: Failing, *, stream: bool) -> Json:
    """The JSON body of a request. Raises `ProviderError` for one that no server could take."""
    _check_choice(request, failing)
    try:
        history = remembered(request, identity, api)
        if isinstance(history, ResponsesHistory):
            return responses_body(request, identity, history.render(), stream=stream)
        return chat_body(request, identity, history.render(request.system), stream=stream)
    except Exception as error:
        raise failing.raised(error) from error


def _check_choice(request: ModelRequest, failing: Failing) -> None:
    choice, names = request.tool_choice, [spec.name for spec in request.tools]
    if choice in ("auto", "none") or choice in names or (choice == "required" and names):
        return
    have = f"the tools are {', '.join(names)}" if names else "there are no tools"
    raise failing.error(f"the tool choice {choice!r} cannot be met: {have}", "invalid")


def remembered(request: ModelRequest, identity: Identity, api: Api) -> ChatHistory | ResponsesHistory:
    """The request's messages, encoded; of an epoch that is known only those that are new."""
    place = f"{identity.tag}/{identity.family}/{api}/{identity.vision}"
    known: Remembered | None = request.memo.get(place)
    if known is None or not known.fits(request):
        known = request.memo[place] = Remembered((ResponsesHistory if api == "responses" else ChatHistory)(identity))
    total = len(request.messages)
    if total > known.count:
        known.history.extend(request.messages[number] for number in range(known.count, total))
        known.count = total
        known.last = request.messages[total - 1]
    return known.history


def assembly_for(
    request: ModelRequest, identity: Identity, api: Api, prices: Prices | None
) -> Callable[[str], Assembly]:
    """What makes the assembly of an answer, given the answer's request id."""
    return partial(_assembly, identity, api, prices, (request.conversation, request.turn, request.round))


def _assembly(identity: Identity, api: Api, prices: Prices | None, seed: object, request_id: str) -> Assembly:
    context = Context(identity, request_id, prices, seed)
    return ResponsesAssembly(context) if api == "responses" else ChatAssembly(context)
