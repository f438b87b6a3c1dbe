"""What the Responses API asks of items that it has handed out before: reasoning, references, chains."""

from __future__ import annotations

from collections.abc import Iterable

from hookloop.testing.server.issued import Issued

from .registry import Finding, Rulebook, fault
from .responses_view import JsonObject, ResponsesView, by_model, is_reference, kind_of

RULES: Rulebook[ResponsesView] = Rulebook()
rule = RULES.rule


@rule("reasoning_alone")
def _reasoning_alone(view: ResponsesView) -> Iterable[Finding]:
    """A reasoning item is followed by what the model said with it."""
    items = view.resolved()
    for at, item in enumerate(items):
        if kind_of(item) != "reasoning":
            continue
        if at + 1 == len(items) or not by_model(items[at + 1]):
            text = f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."
            yield fault(text, param="input")


@rule("reasoning_missing")
def _reasoning_missing(view: ResponsesView) -> Iterable[Finding]:
    """A stored item that is sent by its id brings the reasoning that came before it."""
    if view.known is None:
        return
    sent = {str(item.get("id")) for item in (*view.chain, *view.items)}
    for item in view.items:
        key = str(item.get("id"))
        reasoning = view.known.reasoning_before.get(key)
        if reasoning and key in view.known.stored_items and reasoning not in sent:
            kind = kind_of(view.known.items[key])
            text = f"Item '{key}' of type '{kind}' was provided without its required 'reasoning' item: '{reasoning}'."
            yield fault(text, param="input")


@rule("item_unknown")
def _item_unknown(view: ResponsesView) -> Iterable[Finding]:
    """What is sent by its id alone has been stored."""
    for item in view.items:
        key = str(item.get("id"))
        if _by_id_alone(item) and not _stored(key, view):
            text = f"Item with id '{key}' not found."
            if view.body.get("store") is False or (view.known and key in view.known.items):
                text += (
                    " Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove "
                    "this item from your input."
                )
            yield fault(text, 404, param="input")


def _by_id_alone(item: JsonObject) -> bool:
    return is_reference(item) or (kind_of(item) == "reasoning" and not item.get("encrypted_content"))


def _stored(key: str, view: ResponsesView) -> bool:
    """Whether the server kept the item; without a ledger only `store: false` tells that it did not."""
    if view.known is None:
        return view.body.get("store") is not False
    return key in view.known.stored_items


@rule("encrypted")
def _encrypted(view: ResponsesView) -> Iterable[Finding]:
    """Encrypted reasoning comes back as it went, on its own item."""
    for item in view.items if view.known is not None else ():
        secret = item.get("encrypted_content")
        if kind_of(item) == "reasoning" and secret and not _genuine(item, str(secret), view.known):
            text = (
                f"The encrypted content for item {item.get('id')} could not be verified. Reason: Encrypted content could "
                "not be decrypted or parsed."
            )
            yield fault(text, code="invalid_encrypted_content", param="input")


def _genuine(item: JsonObject, secret: str, known: Issued | None) -> bool:
    holders = known.encrypted.get(secret, ()) if known else ()
    return (item.get("id") is None and bool(holders)) or str(item.get("id")) in holders


@rule("previous_unknown", gate=True)
def _previous_unknown(view: ResponsesView) -> Iterable[Finding]:
    """A previous response is one that was stored."""
    previous = view.body.get("previous_response_id")
    if previous is None or view.known is None:
        return
    found = view.known.responses.get(str(previous))
    if found is None or not found.stored:
        text = f"Previous response with id '{previous}' not found."
        yield fault(text, code="previous_response_not_found", param="previous_response_id")
