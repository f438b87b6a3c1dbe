"""The hooks, in the order a turn meets them. These docstrings are the reference documentation.

Arguments are opt-in: an implementation names the ones it wants. Those that mean the same everywhere are explained here once:
`turn` (see `Turn`), `conversation` (its id), `view` (the messages as they would be sent), `reply` (the reply that made the call).
Unless a hook says otherwise,

- *order*: plugins are asked in plugin order (config's `order`, then tryfirst/trylast, then name; for `Agent(plugins=[…])`
  the list), outermost first; hooks whose name begins with `after_` in the reverse order;
- *contributions* are None, a str (a user-role message), a `Message` (user role), or an iterable of those. The engine puts
  them at the hook's place in history, in the order asked, never between a call and its results, and marks each with
  plugin, version, hook, turn and round;
- *verdicts* (see `verdicts`) may stand alone or among messages; one that the hook may not return is a `PluginError`;
- *failures* raise `PluginError` to the caller and the turn ends "failed" with valid history, unless config says
  `on_error = "skip"` or `"disable"` for the plugin, or the hook is an observer;
- every hook may be `def` or `async def`; an async one is awaited in async runs, and runs on the agent's portal thread in
  sync ones. A sync one runs on the caller's thread (in async runs: on the event loop), so it must not block for long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ._markers import hookspec
from .entries import Entry
from .errors import ProviderError
from .events import Event
from .memory import Batch, Loaded, LoadQuery
from .messages import Message, ToolCall, ToolResult
from .outcome import Outcome
from .providers import ModelRequest, Reply
from .tools import Tool, Toolset
from .turn import Turn
from .verdicts import Answer, Decision, Deny, Replace, Retry, Stop, Suspend
from .views import Condense, Narrow, Window

if TYPE_CHECKING:
    from collections.abc import Callable

Item: TypeAlias = "str | Message"
Contribution: TypeAlias = "Item | Iterable[Item] | None"


@hookspec
def register_tools(
    turn: Turn, conversation: str
) -> Iterable[Tool | Toolset | Callable[..., Any]] | Tool | Toolset | None:
    """Give the turn tools, beside those of the agent.

    When: once at the start of each turn and of each resume, before anything is stored.
    Arguments: `turn` (its `round` is 0).
    Returns: a tool, a function, a `Toolset`, or an iterable of those; None for none. A toolset is opened now and closed when
    the run ends, whatever happened. Several plugins' tools are added up; two tools of one name are an error that names both.
    Not called: for a repeated `turn_id` that is finished.
    Failure: `PluginError`, before any request.
    """


@hookspec
def load_memory(conversation: str, query: LoadQuery) -> Loaded | Iterable[Entry] | None:
    """Give back what is stored of a conversation. Only for a memory that owns histories.

    When: first thing in each turn and resume. Only the first memory that implements it is asked.
    Arguments: `conversation`, its id; `query`, what is needed (see `LoadQuery`).
    Returns: a `Loaded`, or the entries alone where all are given; for a conversation that was never seen `Loaded()` or None.
    Failure: raises; the turn never begins and nothing is stored.
    """


@hookspec
def recall(turn: Turn, conversation: str, query: Message) -> Contribution:
    """Retrieve what may help with the user's message: facts, documents, earlier conversations.

    When: once when a turn starts, after `load_memory`.
    Arguments: `query` is the user's message; `conversation` the id.
    Returns: contributions, placed right after the user's message and always ephemeral (out of views when the turn ends,
    never given to outside memories).
    Not called: on a resume, or for a repeated `turn_id`.
    Failure: skipped with a warning event; the turn goes on without it.
    """


@hookspec
def before_turn(
    turn: Turn, query: Message, view: Sequence[Message], conversation: str
) -> Contribution | Replace[Any] | Stop:
    """Judge and complete the user's input.

    When: once when a turn starts, after `recall`.
    Arguments: `query` is the user's message.
    Returns: contributions, placed after the user's message; a message with the role "system" is added to the turn's system
    text (the only hook that may do so). `Replace(str or Message)`: another input; then all plugins are asked again with it,
    up to three times, after which the input is stopped; only the last pass's contributions count. `Stop(reason, text)`: the
    model is not asked, only marks are stored, `text` is the outcome's.
    Not called: on a resume, or for a repeated `turn_id`.
    Failure: `PluginError`.
    """


@hookspec(firstresult=True)
def select_context(turn: Turn, view: Sequence[Message], conversation: str) -> Window | Condense | None:
    """Choose how much of the conversation is sent.

    When: once when a turn starts, before its first entry is stored.
    Arguments: `view`, the closed turns' messages as they would be sent.
    Returns: a `Window`, the view policy of this turn; or `Condense(text, turns, window)`, which puts a summary in the place of
    the oldest turns for good. None leaves it to the next plugin, then to config. The first answer wins.
    Failure: `PluginError`.
    """


@hookspec
def before_round(
    turn: Turn, request: ModelRequest, view: Sequence[Message], conversation: str
) -> Contribution | Narrow | Answer[Any]:
    """Look at a request before it goes out.

    When: before each request to the model, the first too.
    Arguments: `view`, the messages as they would be sent; `request`, the whole of it.
    Returns: contributions, appended behind everything else, so in this request too. `Narrow`: for this round alone (of
    several: allow-lists are intersected; for the rest the first that says something). `Answer(text or Reply)`: becomes the
    reply instead of asking.
    Failure: `PluginError`.
    """


@hookspec
def on_model_error(
    turn: Turn, request: ModelRequest, error: ProviderError, view: Sequence[Message], conversation: str
) -> Retry | Answer[Any] | Stop | None:
    """Decide what to do when the model could not be asked or its stream broke.

    When: after the provider's own retries, for each failed attempt.
    Arguments: `error`, with kind, status, `retryable` and the partial reply.
    Returns: `Retry(after, provider)`: ask again (what was streamed is discarded, with an event); `Answer(text or Reply)`: use
    this; `Stop(reason, text)`: end the turn; None: let it raise.
    Not called: when the context is too long and a recut may still help.
    Failure: `PluginError`, with the provider's error as its context.
    """


@hookspec
def after_reply(
    turn: Turn, request: ModelRequest, reply: Reply, view: Sequence[Message], conversation: str
) -> Contribution | Replace[Any] | Stop:
    """Judge a reply before it becomes history and before any of its calls runs.

    When: after every reply, the final one too. While a plugin implements it, streamed pieces are held back until all have
    spoken. To observe, use `on_event`.
    Arguments: `reply`, as it stands after the plugins further in.
    Returns: contributions, stored with the reply and shown behind its whole call group (behind a final reply they do not
    make the turn go on). `Replace(text or Reply)`: folded, innermost first, so the outermost plugin has the last word.
    `Stop(reason, text)`: the reply never becomes history; the text stands in its place.
    Failure: always `PluginError`, whatever `on_error` says; the reply never becomes history.
    """


@hookspec
def before_tool(
    turn: Turn, call: ToolCall, decision: Decision | None, reply: Reply, view: Sequence[Message], conversation: str
) -> Deny | Suspend | Answer[Any] | Replace[Any] | Stop | None:
    """Judge a call before it runs.

    When: for each call that is still alive: known tool, within limits, valid arguments. The calls of a reply are judged in
    order, all before the first one starts. On a resume again, with `decision` set.
    Arguments: `call`, with the validated arguments; `decision`, what somebody decided on it, else None.
    Returns: None lets it run. `Deny(reason)`: an error result. `Suspend(question, expires)`: the turn waits for a decision
    (its siblings run; not asked twice for a decided call). `Answer(value)`: the result, without running. `Replace(mapping)`:
    other arguments; they are validated and all plugins are asked again, three passes at most, then the call is denied; on a
    resume it voids the approval. `Stop(reason, text)`: no call of this reply starts and the turn ends.
    Not called: for unknown tools, invalid arguments, calls over a limit or of a cut reply.
    Failure: the call is denied, whatever `on_error` says, and the turn goes on.
    """


@hookspec
def after_tool(
    turn: Turn, call: ToolCall, result: ToolResult, reply: Reply, view: Sequence[Message], conversation: str
) -> Contribution | Replace[Any] | Stop:
    """See, complete or change a result before it is stored.

    When: for every call that is answered in the turn, also failed, denied, faulty ones and those over a limit.
    Arguments: `call`, as the model wrote it; `result`, as it stands after the plugins further in; `result.ran` holds the
    arguments that ran.
    Returns: contributions, stored with the result and shown behind the whole call group. `Replace(value or ToolResult)`:
    folded, innermost first. `Stop(reason, text)`: what runs is answered first, then the turn ends.
    Not called: for calls of cut replies, and for those that the engine closes when a turn is cancelled or recovered.
    Failure: no sibling starts any more, what runs is awaited, the stored result says that the tool ran and that its result is
    withheld, and the turn ends with `PluginError`.
    """


@hookspec
def next_instructions(
    turn: Turn, results: Sequence[ToolResult], reply: Reply, view: Sequence[Message], conversation: str
) -> Contribution | Stop:
    """Tell the model something about the results that are in.

    When: after each call group, when all its results are stored.
    Arguments: `results`, in call order; `reply`, the one that made the calls.
    Returns: contributions, placed after the results and seen by every later request. `Stop(reason, text)`: end the turn.
    Not called: after a return-direct, or when the turn is ending.
    Failure: `PluginError`; the results stay in history.
    """


@hookspec
def persist_memory(batch: Batch, conversation: str) -> None:
    """Store a batch, all or nothing.

    When: for a memory inside, at the turn's fixed points (start; reply with its judged calls; each result; end); for one
    outside, once at the end. For each memory that implements it.
    Arguments: `batch` (see `Batch` and `plan_append` for the rules), `conversation`, its id.
    Returns: nothing.
    Failure: `Conflict` and other errors of the memory that owns the history end the turn and are raised, with the finished
    outcome attached; those of other memories are skipped with a warning event.
    """


@hookspec
def review_answer(turn: Turn, reply: Reply, view: Sequence[Message], conversation: str) -> Contribution:
    """Look at a final answer and say "not yet, go on".

    When: after each reply without calls that would end the turn normally.
    Arguments: `reply`, which is in history already.
    Returns: contributions: they are appended and the turn makes another round, within its limits. None from all: the turn ends.
    Not called: when the turn ends by a limit, a Stop, a cut reply or an error.
    Failure: `PluginError`; the reply stays in history.
    """


@hookspec
def after_turn(turn: Turn, outcome: Outcome, conversation: str) -> None:
    """Observe the end of a run.

    When: once per run or resume, whatever happened (over a crash of the process: at most once), after the last batch was
    stored; what it puts into `turn.state` is stored in one more.
    Arguments: `outcome`.
    Returns: nothing.
    Failure: skipped with a warning event.
    """


@hookspec
def on_event(turn: Turn, event: Event, conversation: str) -> None:
    """Observe each typed event: exact requests, deltas, tool runs, writes, limits.

    When: at any time in a turn, in order, before the caller of a stream sees the event.
    Arguments: `event`, one of the classes in `events`.
    Returns: nothing.
    Failure: skipped with a warning of the outcome (once per plugin and run).
    """


@hookspec
def close() -> None:
    """Free what the plugin holds.

    When: once, when the agent is closed, in reverse plugin order.
    Returns: nothing.
    Failure: skipped with a warning; the other plugins are closed all the same.
    """
