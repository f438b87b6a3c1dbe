"""Kind B: complete replies that odd servers send, through the whole loop: what runs, what is stored, what is sent next.

Each is played as the stream of the case and as the whole body of the same server. What only a stream can do (an entry in
pieces, a name that comes later) has no other body than the plain one, which such a server then sends.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from odd import Called, Ran, body, chat, claude
from wires import CHAT, MESSAGES

from cases import ON_EACH_WIRE, Place, places
from hookloop.testing import call, reply, say
from hookloop.testing.server import DONE, Sse, calls, cbd, cbe, cbs, chunk, ijd, tc

on_chat = pytest.mark.parametrize("place", places(CHAT), ids=str)
on_messages = pytest.mark.parametrize("place", places(MESSAGES), ids=str)
F1: Called = [("f", {"a": 1})]
PLAIN = tc(0, "c1", "f", '{"a":1}')


def play(place: Place, step: Any, expected: Called) -> None:
    """The calls of one odd reply run with the arguments that were meant, and go back as calls with results."""
    ran = Ran()
    with place.stage(step, say("done"), tools=ran.tools()) as stage:
        assert stage.run().text == "done"
        assert sorted(ran.calls, key=str) == expected
        kinds = [kind for kind, _ in stage.sent[1]]
        assert kinds == ["user", *["call"] * len(expected), *["result"] * len(expected)]


@on_chat
def test_B01_two_entries_of_one_index_in_one_chunk_are_one_call(place: Place) -> None:
    events = [calls(tc(0, "c1", "f", ""), tc(0, args='{"a":')), calls(tc(0, args="1}"))]
    play(place, chat(events, body(PLAIN)), F1)


@on_chat
def test_B02_entries_without_an_index_are_one_call(place: Place) -> None:
    events = [calls(tc(None, "c1", "f", '{"a":')), calls(tc(None, args="1}"))]
    play(place, chat(events, body(tc(None, "c1", "f", '{"a":1}'))), F1)


@pytest.mark.parametrize("at_once", [False, True], ids=["in two chunks", "in one chunk"])
@on_chat
def test_B04_parallel_calls_all_at_index_0_are_two(place: Place, at_once: bool) -> None:
    two = [tc(0, "c1", "s", '{"q":"a"}'), tc(0, "c2", "s", '{"q":"b"}')]
    events = [calls(*two)] if at_once else [calls(entry) for entry in two]
    play(place, chat(events, body(*two)), [("s", {"q": "a"}), ("s", {"q": "b"})])


@on_chat
def test_B06_a_name_in_every_chunk_is_one_name(place: Place) -> None:
    pieces = [tc(0, "c1", "read_file", ""), tc(0, name="read_file", args='{"p"'), tc(0, name="read_file", args=":1}")]
    whole = body(tc(0, "c1", "read_file", '{"p":1}'))
    play(place, chat([calls(piece) for piece in pieces], whole), [("read_file", {"p": 1})])


@on_chat
def test_B07_an_empty_name_later_erases_nothing(place: Place) -> None:
    events = [calls(tc(0, "c1", "f", "")), calls(tc(0, name="", args="{}"))]
    play(place, chat(events, body(tc(0, "c1", "f", "{}"))), [("f", {})])


@on_chat
def test_B09_a_name_that_comes_later_is_the_name(place: Place) -> None:
    events = [calls(tc(0, "c1", "", "")), calls(tc(0, "c1", "bash", '{"a":1}'))]
    play(place, chat(events, body(tc(0, "c1", "bash", '{"a":1}'))), [("bash", {"a": 1})])


@pytest.mark.parametrize("arguments", [{}, {"args": ""}, {"args": "  "}, {"args": None}], ids=str)
@on_chat
def test_B10_C08_no_arguments_are_an_empty_object(place: Place, arguments: dict[str, Any]) -> None:
    entry = tc(0, "c1", "now", **arguments)
    play(place, chat([calls(entry)], body(entry)), [("now", {})])


@pytest.mark.parametrize("raw", ["", "  "])
@pytest.mark.parametrize("place", ON_EACH_WIRE, ids=str)
def test_C08_empty_arguments_of_a_call_without_parameters(place: Place, raw: str) -> None:
    play(place, reply(call("now", raw, id="c1")), [("now", {})])


FILTERED = {"prompt_filter_results": [{"prompt_index": 0}], "model": "", "id": ""}


@on_chat
def test_B12_a_first_chunk_without_choices_before_a_call(place: Place) -> None:
    events = [{**chunk(choices=[]), **FILTERED}, calls(PLAIN)]
    play(place, chat(events, {**body(PLAIN), **FILTERED}), F1)


@on_chat
def test_B12_a_first_chunk_without_choices_before_text(place: Place) -> None:
    events = [{**chunk(choices=[]), **FILTERED}, chunk({"content": "he"}), chunk({"content": "llo"})]
    whole = {**body(content="hello", finish="stop"), **FILTERED}
    with place.stage(chat(events, whole, "stop")) as stage:
        assert stage.run().text == "hello"


@on_chat
def test_B13_usage_in_a_chunk_of_its_own_counts(place: Place) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    events: list[Any] = [chunk({"content": "hi"}), chunk({}, "stop"), chunk(choices=[], usage=usage), DONE]
    with place.stage(Sse(events, whole={**body(content="hi", finish="stop"), "usage": usage})) as stage:
        outcome = stage.run()
        assert (outcome.text, outcome.usage.input, outcome.usage.output) == ("hi", 10, 5)


@on_chat
def test_G01_calls_run_though_the_finish_says_stop(place: Place) -> None:
    play(place, chat([calls(PLAIN)], body(PLAIN, finish="stop"), "stop"), F1)


@on_chat
def test_G11_arguments_in_a_json_string_are_taken_out(place: Place) -> None:
    entry = tc(0, "c1", "f", '"{\\"a\\":2}"')
    play(place, chat([calls(entry)], body(entry)), [("f", {"a": 2})])


@pytest.mark.parametrize("args", ['{"n":2}', '["x"]', "3", '"text"', '"\\"{}\\""'])
@on_chat
def test_G11_C04_only_an_object_inside_a_string_is_taken_out(place: Place, args: str) -> None:
    ran = Ran()
    with place.stage(reply(call("pay", json.dumps(args), id="c1")), say("done"), tools=ran.tools()) as stage:
        assert stage.run().text == "done"
        assert ran.calls == ([("pay", {"n": 2})] if args == '{"n":2}' else [])


START = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
WHOLE_INPUT = {**START, "input": {"a": 1}}
B19: dict[str, tuple[list[Any], dict[str, Any], Called]] = {
    "all at the start": ([cbs(0, WHOLE_INPUT), cbe(0)], WHOLE_INPUT, F1),
    "an empty start and deltas": ([cbs(0, START), ijd(0, '{"a":'), ijd(0, "1}"), cbe(0)], WHOLE_INPUT, F1),
    "nothing at all": ([cbs(0, START), cbe(0)], START, [("f", {})]),
}


@pytest.mark.parametrize("name", B19)
@on_messages
def test_B19_the_input_may_stand_at_the_start_of_its_block(place: Place, name: str) -> None:
    events, block, expected = B19[name]
    play(place, claude(events, [block]), expected)


PIECES = ['{"file_', 'path":"a","cont', 'ent":"b"}']
PUT: Called = [("put", {"file_path": "a", "content": "b"})]


@on_messages
def test_B20_fragments_are_read_together(place: Place) -> None:
    start = {**START, "name": "put"}
    events = [cbs(0, start), *(ijd(0, piece) for piece in PIECES), cbe(0)]
    play(place, claude(events, [{**start, "input": PUT[0][1]}]), PUT)


@on_chat
def test_B20_so_are_those_of_chat_completions(place: Place) -> None:
    events = [calls(tc(0, "c1", "put", "")), *(calls(tc(0, args=piece)) for piece in PIECES)]
    play(place, chat(events, body(tc(0, "c1", "put", "".join(PIECES)))), PUT)


@on_messages
def test_B20_the_notation_is_what_the_server_sends(place: Place) -> None:
    """The builders of these files, checked against a stream that is in order."""
    events = [cbs(0, {"type": "text", "text": ""}), cbd(0, "text_delta", text="hi"), cbe(0)]
    with place.stage(claude(events, [{"type": "text", "text": "hi"}], "end_turn")) as stage:
        assert stage.run().text == "hi"
