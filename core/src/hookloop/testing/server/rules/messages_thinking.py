"""What the Messages API asks of thinking: its configuration, and blocks that come back as they went."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hookloop.testing.server.issued import SIGNED, Issued, Signed, Trace, signature_of

from .messages_view import Block, Line, MessagesView
from .registry import Finding, Rulebook

RULES: Rulebook[MessagesView] = Rulebook()
rule = RULES.rule

_INVALID = "Invalid `signature` in `thinking` block"
_BOUND = (
    "The block is bound to a different conversation. Remove the block, or set "
    '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)
_MODIFIED = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must "
    "remain as they were in the original response."
)


@rule("thinking_config", "doc")
def _thinking_config(view: MessagesView) -> Iterable[Finding]:
    """Fixed budgets until 4.6, adaptive thinking from 4.6 on."""
    kind = view.thinking
    if view.body.get("thinking") is None:
        return
    if kind not in ("enabled", "disabled", "adaptive", "between_tools"):
        yield f"thinking: Input tag '{kind}' does not match any of the expected tags"
    elif kind == "enabled" and not view.model.takes_enabled:
        yield (
            '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and '
            '"output_config.effort" to control thinking behavior.'
        )
    elif kind in ("adaptive", "between_tools") and not view.model.takes_adaptive:
        yield f"{kind} thinking is not supported on this model"


@rule("thinking_budget", "doc")
def _thinking_budget(view: MessagesView) -> Iterable[Finding]:
    """A budget is at least 1024 and below `max_tokens` (unless thinking is interleaved)."""
    config = view.body.get("thinking")
    if view.thinking != "enabled" or not isinstance(config, Mapping):
        return
    budget, limit = config.get("budget_tokens"), view.body.get("max_tokens")
    if not isinstance(budget, int):
        yield "thinking.enabled.budget_tokens: Field required"
    elif budget < 1024:
        yield "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
    elif isinstance(limit, int) and budget >= limit and not view.beta("interleaved-thinking"):
        yield "`max_tokens` must be greater than `thinking.budget_tokens`."


@rule("thinking_temperature", "doc")
def _thinking_temperature(view: MessagesView) -> Iterable[Finding]:
    """Thinking takes temperature 1 only."""
    if view.thinks and view.body.get("temperature") not in (None, 1):
        yield "`temperature` may only be set to 1 when thinking is enabled."


@rule("thinking_off")
def _thinking_off(view: MessagesView) -> Iterable[Finding]:
    """No thinking in the latest assistant message where thinking is off."""
    latest = _latest(view)
    off = view.thinking == "disabled" or (not view.thinks and view.model.known)
    if latest is not None and off and any(not _as_asked(block, view) for block in latest.of(*SIGNED)):
        yield (
            f"{latest.path}: When thinking is disabled, an `assistant` message in the final position cannot contain "
            "`thinking`. To use thinking blocks, enable `thinking` in your request."
        )


def _as_asked(block: Block, view: MessagesView) -> bool:
    """Whether the block was issued under the thinking configuration of this request (a script may think unasked)."""
    records = view.issued.signatures.get(signature_of(block), ()) if view.issued else ()
    return any(record.thinking == view.thinking for record in records)


@rule("thinking_last")
def _thinking_last(view: MessagesView) -> Iterable[Finding]:
    """A final assistant message does not end in thinking."""
    last = view.lines[-1] if view.lines else None
    if last and last.role == "assistant" and last.blocks and last.blocks[-1].get("type") in SIGNED:
        yield f"{last.path}: The final block in an assistant message cannot be `thinking`."


@rule("thinking_first")
def _thinking_first(view: MessagesView) -> Iterable[Finding]:
    """With a fixed budget the turn in progress starts with thinking."""
    first = next((line for line in view.open_turn if line.role == "assistant"), None)
    if view.thinking == "enabled" and first is not None and first.blocks and first.blocks[0].get("type") not in SIGNED:
        yield (
            f"{first.path}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
            f"`{first.blocks[0].get('type')}`. When `thinking` is enabled, a final `assistant` message must start with a "
            "thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
        )


@rule("thinking_dropped")
def _thinking_dropped(view: MessagesView) -> Iterable[Finding]:
    """During a tool loop all thinking of a reply comes back, in its order, before its calls."""
    if view.issued is None or not view.thinks:
        return
    for line in view.open_turn:
        if line.role == "assistant":
            yield from (f"{line.path}: {_MODIFIED}" for _ in _dropped(line, view, view.issued))


def _dropped(line: Line, view: MessagesView, issued: Issued) -> Iterator[str]:
    """The first call of a message that comes back without the thinking that it was issued with."""
    seen: list[str] = []
    for block in line.blocks:
        if block.get("type") in SIGNED:
            seen.append(signature_of(block))
        known = issued.thinking_of_call.get(block["id"], ()) if block.get("type") == "tool_use" else ()
        expected = [signatures for signatures in known if _readable(signatures, view, issued)]
        if expected and len(expected) == len(known) and not any(_kept(one, seen) for one in expected):
            yield block["id"]
            return


def _kept(expected: tuple[str, ...], seen: list[str]) -> bool:
    return [signature for signature in seen if signature in expected] == list(expected)


def _readable(signatures: Iterable[str], view: MessagesView, issued: Issued) -> bool:
    """Whether the model that is asked made this thinking."""
    model = view.body.get("model")
    return all(any(record.model == model for record in issued.signatures.get(s, ())) for s in signatures)


@rule("thinking_modified")
def _thinking_modified(view: MessagesView) -> Iterable[Finding]:
    """Thinking of the latest assistant message has the text that it had."""
    latest = _latest(view)
    if view.issued is None or latest is None:
        return
    for index, block in enumerate(latest.blocks):
        if block.get("type") in SIGNED and _changed(block, view.issued):
            yield f"{latest.path}.content.{index}: {_MODIFIED}"


@rule("signature")
def _signature(view: MessagesView) -> Iterable[Finding]:
    """Every signature was issued, for this text."""
    if view.issued is None:
        return
    latest = _latest(view)
    for line, index, block in view.placed(*SIGNED):
        if signature_of(block) not in view.issued.signatures or (line is not latest and _changed(block, view.issued)):
            yield f"{line.path}.content.{index}: {_INVALID}"


@rule("thinking_prefix")
def _thinking_prefix(view: MessagesView) -> Iterable[Finding]:
    """Preserved thinking: what came before a thinking block is what came before it when it was issued."""
    bound = view.model.binds_thinking if view.preserved is None else view.preserved
    if view.issued is None or not bound or _drops_blocks(view) or not view.placed(*SIGNED):
        return
    trace = Trace(view.body.get("system"), view.body.get("tools"))
    for line, index, block in view.numbered():
        why = _moved(view.issued.signatures.get(signature_of(block)), trace) if block["type"] in SIGNED else ""
        if why:
            yield f"{line.path}.content.{index}: {_INVALID}. {_BOUND} {why}"
            return
        trace.add(line.role, block)


def _moved(records: list[Signed] | None, trace: Trace) -> str:
    """Why a block does not belong where it stands; an unknown signature is the affair of another rule."""
    faults = [_difference(record, trace) for record in records or ()]
    return faults[-1] if faults and all(faults) else ""


def _difference(record: Signed, trace: Trace) -> str:
    changed = record.prefix.changed(trace.prefix())
    if changed:
        return f"The {changed} differs from what this block was created with."
    if trace.thinking and record.previous != trace.thinking:
        return "The `thinking` block that preceded this one when it was created is missing from this request."
    return ""


def _drops_blocks(view: MessagesView) -> bool:
    config = view.body.get("thinking")
    binding = config.get("block_binding") if isinstance(config, Mapping) else None
    wanted = isinstance(binding, Mapping) and binding.get("prefix_mismatch_behavior") == "drop_block"
    return wanted and view.beta("thinking-binding-controls")


def _changed(block: Block, issued: Issued) -> bool:
    records = issued.signatures.get(signature_of(block))
    if records is None:
        return False
    return not any(record.text == str(block.get("thinking", "")) for record in records)


def _latest(view: MessagesView) -> Line | None:
    return next((line for line in reversed(view.lines) if line.role == "assistant"), None)
