"""A strict local server that plays scripts to real SDKs and refuses what the real APIs refuse.

    with StrictServer([[say("I look."), call("read", {"path": "a"})], "Done."]) as server:
        client = openai.OpenAI(base_url=server.url + "/v1", api_key="any")
        ...
    assert server.refusals == []

One script serves Messages, Chat Completions and Responses, whole and streamed, and the scripted provider as well.
"""

from .notation import DONE, ant, calls, cbd, cbe, cbs, chunk, ijd, md, ms, mstop, tc
from .record import Departure, Recorded, Refusal, Violation
from .rules import check_chat, check_messages, check_responses
from .steps import Chunks, Cut, Delay, Deltas, Drop, ErrorEvent, Fail, Raw, Sse, Step
from .strict import StrictServer

__all__ = [
    "DONE",
    "Chunks",
    "Cut",
    "Delay",
    "Deltas",
    "Departure",
    "Drop",
    "ErrorEvent",
    "Fail",
    "Raw",
    "Recorded",
    "Refusal",
    "Sse",
    "Step",
    "StrictServer",
    "Violation",
    "ant",
    "calls",
    "cbd",
    "cbe",
    "cbs",
    "check_chat",
    "check_messages",
    "check_responses",
    "chunk",
    "ijd",
    "md",
    "ms",
    "mstop",
    "tc",
]
