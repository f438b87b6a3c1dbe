"""Rules that compare a request with what the server has handed out."""

from __future__ import annotations

import http.client
import json
from copy import deepcopy
from typing import Any

import pytest

from hookloop.testing import call, reply, say, think
from hookloop.testing.server import StrictServer
from hookloop_hookspecs import Thinking, ToolCall

Json = dict[str, Any]
PATHS = {"messages": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses"}
HEADERS = {"authorization": "Bearer k", "anthropic-version": "2023-06-01", "content-type": "application/json"}
TOOL = {"name": "f", "input_schema": {"type": "object"}}


def post(server: StrictServer, api: str, body: Json, **headers: str) -> tuple[int, Json]:
    connection = http.client.HTTPConnection("127.0.0.1", int(server.url.rsplit(":", 1)[1]))
    connection.request("POST", PATHS[api], json.dumps(body), {**HEADERS, **headers})
    response = connection.getresponse()
    answered = json.loads(response.read())
    connection.close()
    return response.status, answered


def broken(server: StrictServer, api: str, body: Json, **headers: str) -> list[str]:
    """The rules that the request breaks, none where it is answered; a step is provided for it."""
    server.play("fine")
    before = len(server.refusals)
    post(server, api, body, **headers)
    return [violation.rule for refusal in server.refusals[before:] for violation in refusal.all]


def thinking_loop(server: StrictServer, *parts: Any, model: str = "claude-sonnet-4-6") -> Json:
    """A request whose last turn is a tool loop that the server answered with these parts."""
    body: Json = {
        "model": model,
        "max_tokens": 4000,
        "tools": [TOOL],
        "thinking": {"type": "adaptive"},
        "messages": [{"role": "user", "content": "go"}],
    }
    server.play(list(parts))
    content = post(server, "messages", body)[1]["content"]
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "ok"}
        for block in content
        if block["type"] == "tool_use"
    ]
    body["messages"] += [{"role": "assistant", "content": content}, {"role": "user", "content": results}]
    return body


def test_thinking_that_comes_back_as_it_went_is_taken() -> None:
    with StrictServer() as server:
        body = thinking_loop(server, think("a"), call("f"), think("b"), call("f"), call("f"))
        assert broken(server, "messages", body) == []


def test_a_default_signature_is_replaced_by_one_of_the_servers_own_and_a_given_one_is_kept() -> None:
    with StrictServer() as server:
        body = thinking_loop(server, think("a"), think("b", "mine"), call("f"))
    first, second = body["messages"][1]["content"][:2]
    assert first["signature"].startswith("sig_")
    assert second["signature"] == "mine"


MUTATIONS = {
    "thinking_dropped": lambda content: content.pop(0),
    "thinking_modified": lambda content: content[0].update(thinking="other"),
    "signature": lambda content: content[0].update(signature="forged"),
}


@pytest.mark.parametrize("rule", MUTATIONS)
def test_changed_thinking_of_the_turn_in_progress_is_refused(rule: str) -> None:
    with StrictServer() as server:
        body = thinking_loop(server, think("a"), think("b"), call("f"))
        MUTATIONS[rule](body["messages"][1]["content"])
        assert rule in broken(server, "messages", body)


def test_the_order_of_thinking_and_calls_counts() -> None:
    with StrictServer() as server:
        body = thinking_loop(server, think("a"), call("f"), think("b"), call("f"))
        content = body["messages"][1]["content"]
        content[0], content[2] = content[2], content[0]
        assert broken(server, "messages", body) == ["thinking_dropped"]


def test_redacted_thinking_is_checked_too() -> None:
    with StrictServer() as server:
        body = thinking_loop(server, Thinking(redacted="blob"), call("f"))
        assert body["messages"][1]["content"][0] == {"type": "redacted_thinking", "data": "blob"}
        assert broken(server, "messages", body) == []
        body["messages"][1]["content"][0]["data"] = "other"
        assert "signature" in broken(server, "messages", body)


def test_an_older_turns_thinking_may_be_left_out_but_not_changed() -> None:
    with StrictServer() as server:
        body = thinking_loop(server, think("a"), call("f"))
        body["messages"] += [{"role": "assistant", "content": "done"}, {"role": "user", "content": "next"}]
        left_out, changed = deepcopy(body), deepcopy(body)
        left_out["messages"][1]["content"].pop(0)
        changed["messages"][1]["content"][0]["thinking"] = "other"
        assert broken(server, "messages", left_out) == []
        assert broken(server, "messages", changed) == ["signature"]


def test_another_model_may_be_asked_without_the_thinking() -> None:
    with StrictServer() as server:
        body = thinking_loop(server, think("a"), call("f"))
        body["messages"][1]["content"].pop(0)
        assert broken(server, "messages", {**body, "model": "claude-opus-4-6"}) == []


def test_a_script_may_think_unasked_and_its_thinking_may_come_back_or_not() -> None:
    with StrictServer() as server:
        body = thinking_loop(server, think("a"), call("f"))
        server.play([think("b"), call("f", id="t9")])
        unasked = {key: value for key, value in body.items() if key != "thinking"} | {"messages": body["messages"][:1]}
        content = post(server, "messages", unasked)[1]["content"]
        result = {"type": "tool_result", "tool_use_id": "t9"}
        unasked["messages"] += [{"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
        assert broken(server, "messages", unasked) == []
        content.pop(0)
        assert broken(server, "messages", unasked) == []


def test_an_id_that_a_script_uses_again_is_known_with_both_its_replies() -> None:
    with StrictServer() as server:
        body = thinking_loop(server, think("a"), call("f", id="t1"))
        server.play([think("b"), call("f", id="t1")])
        content = post(server, "messages", body)[1]["content"]
        content[1]["id"] = "t1_2"
        result = {"type": "tool_result", "tool_use_id": "t1_2"}
        body["messages"] += [{"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
        assert broken(server, "messages", body) == []
        body["messages"][1]["content"].pop(0)
        assert broken(server, "messages", body) == ["thinking_dropped"]


def later_turn(server: StrictServer) -> Json:
    body = thinking_loop(server, think("a"), call("f"), model="claude-sonnet-5-5")
    server.play([think("b"), say("done")])
    content = post(server, "messages", body)[1]["content"]
    body["messages"] += [{"role": "assistant", "content": content}, {"role": "user", "content": "next"}]
    return body


PREFIX_CHANGES: dict[str, Any] = {
    "system": lambda body: body.update(system="new"),
    "tools": lambda body: body.update(tools=[TOOL, {**TOOL, "name": "g"}]),
    "question": lambda body: body["messages"][0].update(content="went"),
    "result": lambda body: body["messages"][2]["content"][0].update(content="other"),
    "inserted": lambda body: body["messages"][2]["content"].append({"type": "text", "text": "by the way"}),
}


@pytest.mark.parametrize("change", PREFIX_CHANGES)
def test_preserved_thinking_is_bound_to_what_came_before(change: str) -> None:
    with StrictServer() as server:
        body = later_turn(server)
        assert broken(server, "messages", body) == []
        PREFIX_CHANGES[change](body)
        assert broken(server, "messages", body) == ["thinking_prefix"]
        named = {"system": "`system` prompt", "tools": "`tools`"}.get(change, "messages before it")
        assert f"The {named} differs" in server.refusals[-1].message


def test_what_is_no_change_of_the_prefix() -> None:
    with StrictServer() as server:
        body = later_turn(server)
        body["tools"][0]["cache_control"] = {"type": "ephemeral"}
        body["messages"][0]["content"] = [{"type": "text", "text": "go", "cache_control": {"type": "ephemeral"}}]
        body["messages"][2]["content"][0] |= {"is_error": False, "content": [{"type": "text", "text": "ok"}]}
        body["messages"] += [{"role": "assistant", "content": "x"}, {"role": "user", "content": "y"}]
        assert broken(server, "messages", body) == []


def test_thinking_may_be_removed_from_the_front_and_not_from_the_middle() -> None:
    with StrictServer() as server:
        body = later_turn(server)
        server.play([think("c"), say("bye")])
        content = post(server, "messages", body)[1]["content"]
        body["messages"] += [{"role": "assistant", "content": content}, {"role": "user", "content": "more"}]
        front, middle = deepcopy(body), deepcopy(body)
        front["messages"][1]["content"].pop(0)
        middle["messages"][3]["content"].pop(0)
        assert broken(server, "messages", front) == []
        assert broken(server, "messages", middle) == ["thinking_prefix"]
        assert "is missing from this request" in server.refusals[-1].message


def test_bound_blocks_may_be_dropped_on_demand_and_older_models_do_not_bind() -> None:
    with StrictServer() as server:
        body = later_turn(server)
        body["system"] = "new"
        drop = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
        beta = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
        assert broken(server, "messages", {**body, "thinking": drop}) == ["thinking_prefix"]
        assert broken(server, "messages", {**body, "thinking": drop}, **beta) == []
    for preserved, expected in ((None, []), (True, ["thinking_prefix"])):
        with StrictServer(preserved_thinking=preserved) as server:
            body = thinking_loop(server, think("a"), call("f"))
            assert broken(server, "messages", {**body, "system": "new"}) == expected


def responses_loop(server: StrictServer, store: bool) -> tuple[Json, Json]:
    """The first request of a loop, and the answer of the server."""
    body: Json = {"model": "gpt-5.4", "input": [{"role": "user", "content": "go"}], "store": store}
    server.play([think("hm"), call("f"), call("f")])
    return body, post(server, "responses", body)[1]


def outputs(answer: Json) -> list[Json]:
    calls = [item for item in answer["output"] if item["type"] == "function_call"]
    return [{"type": "function_call_output", "call_id": item["call_id"], "output": "ok"} for item in calls]


@pytest.mark.parametrize("store", [True, False])
def test_output_that_is_echoed_whole_is_taken(store: bool) -> None:
    with StrictServer() as server:
        body, answer = responses_loop(server, store)
        body["input"] += [*answer["output"], *outputs(answer)]
        assert broken(server, "responses", body) == []


def test_stored_items_may_be_referred_to_and_bring_their_reasoning() -> None:
    with StrictServer() as server:
        body, answer = responses_loop(server, store=True)
        references = [{"type": "item_reference", "id": item["id"]} for item in answer["output"]]
        whole = {**body, "input": [*body["input"], *references, *outputs(answer)]}
        assert broken(server, "responses", whole) == []
        without = {**body, "input": [*body["input"], *answer["output"][1:], *outputs(answer)]}
        assert broken(server, "responses", without) == ["reasoning_missing"]


def test_items_that_were_not_stored_are_not_found() -> None:
    with StrictServer() as server:
        body, answer = responses_loop(server, store=False)
        rs = {key: value for key, value in answer["output"][0].items() if key != "encrypted_content"}
        body["input"] += [rs, *answer["output"][1:], *outputs(answer)]
        assert broken(server, "responses", body) == ["item_unknown"]
        refusal = server.refusals[-1]
        assert refusal.status == 404
        assert "Items are not persisted when `store` is set to false" in refusal.message


def test_tampered_encrypted_content_is_refused() -> None:
    with StrictServer() as server:
        body, answer = responses_loop(server, store=False)
        answer["output"][0]["encrypted_content"] += "x"
        body["input"] += [*answer["output"], *outputs(answer)]
        assert broken(server, "responses", body) == ["encrypted"]
        assert server.refusals[-1].all[0].code == "invalid_encrypted_content"


def test_calls_of_a_previous_response_count() -> None:
    with StrictServer() as server:
        _, answer = responses_loop(server, store=True)
        follow: Json = {"model": "gpt-5.4", "previous_response_id": answer["id"], "input": outputs(answer)}
        assert broken(server, "responses", follow) == []
        assert broken(server, "responses", {**follow, "input": outputs(answer)[1:]}) == ["call_orphan"]


def test_a_previous_response_must_have_been_stored() -> None:
    with StrictServer() as server:
        _, answer = responses_loop(server, store=False)
        follow: Json = {"model": "gpt-5.4", "previous_response_id": answer["id"], "input": "next"}
        assert broken(server, "responses", follow)[0] == "previous_unknown"
        assert server.refusals[-1].all[0].code == "previous_response_not_found"


def chat_loop(server: StrictServer, *parts: Any) -> Json:
    body: Json = {"model": "some-model", "messages": [{"role": "user", "content": "go"}]}
    server.play(list(parts))
    message = post(server, "chat", body)[1]["choices"][0]["message"]
    results = [{"role": "tool", "tool_call_id": c["id"], "content": "ok"} for c in message["tool_calls"]]
    body["messages"] += [message, *results]
    return body


def test_deepseek_wants_the_reasoning_of_calls_back_word_for_word() -> None:
    with StrictServer(profile="deepseek") as server:
        body = chat_loop(server, think("because"), call("f"))
        assert broken(server, "chat", body) == []
        body["messages"][1]["reasoning_content"] = "because of that"
        assert broken(server, "chat", body) == ["reasoning_back"]
        del body["messages"][1]["reasoning_content"]
        assert broken(server, "chat", body) == ["reasoning_back"]


def test_deepseek_wants_none_where_there_was_none() -> None:
    with StrictServer(profile="deepseek") as server:
        body = chat_loop(server, call("f"))
        assert broken(server, "chat", body) == []
        body["messages"][1]["reasoning_content"] = "a filler"
        assert broken(server, "chat", body) == []
        body["messages"][1]["reasoning_content"] = ""
        assert broken(server, "chat", body) == ["reasoning_back"]


def test_gemini_wants_the_signature_on_the_same_call() -> None:
    signed = ToolCall("c1", "f", "{}", '{"extra_content":{"google":{"thought_signature":"s1"}}}')
    with StrictServer(profile="gemini") as server:
        body = chat_loop(server, signed, call("f", id="c2"))
        first, second = body["messages"][1]["tool_calls"]
        assert broken(server, "chat", body) == []
        second["extra_content"] = first.pop("extra_content")
        assert "thought_signature" in broken(server, "chat", body)


def test_mistral_makes_short_ids_itself() -> None:
    with StrictServer(profile="mistral") as server:
        body = chat_loop(server, call("f"), call("f"))
        assert broken(server, "chat", body) == []
        assert [len(c["id"]) for c in body["messages"][1]["tool_calls"]] == [9, 9]


def test_equal_scripts_give_equal_bytes() -> None:
    answers = []
    for _ in range(2):
        with StrictServer([reply(think("a"), "b", call("f"))]) as server:
            answers.append(post(server, "responses", {"model": "m", "input": "x"}))
    assert answers[0] == answers[1]
