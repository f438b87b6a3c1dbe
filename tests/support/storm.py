"""Turns that are cancelled or struck by Ctrl-C at any moment, one after the other; a program, since signals are its own.

Arguments: a seed, and how many turns. Ends with 1 and says what was wrong where a turn was not ended in order.
"""

from __future__ import annotations

import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from going import Told

from hookloop import Agent, Limits, tool
from hookloop.engine.history import check
from hookloop.memory import InProcessMemory
from hookloop.testing import ScriptedProvider, call, say
from hookloop_hookspecs import Entry, LoadQuery, NoOpenTurn, TurnEnded, hookimpl

MAIN = threading.main_thread().ident or 0
ROUNDS = 30
FREE = Limits(rounds=None, tool_calls=None, per_tool=None)


class Adds:
    """Contributes in every round, so that the caller's thread drives."""

    name = "adds"

    @hookimpl
    def next_instructions(self) -> str:
        return "go on"


class Turn:
    """One turn in the storm."""

    def __init__(self, chance: random.Random) -> None:
        self.kind = chance.choice(["ctrl-c", "cancel"])
        self.way = chance.choice(["run", "run with a plugin", "stream"])
        self.delay = chance.random() * 0.005
        self.ran: Counter[int] = Counter()
        self.memory = InProcessMemory()
        self.told = Told()
        self.over = threading.Event()
        script: list[Any] = [call("note", {"n": n}, id=f"c{n}") for n in range(ROUNDS)]
        self.provider = ScriptedProvider([*script, say("done")], transport="whole")

        @tool
        def note(n: int) -> str:
            """Note that it ran."""
            self.ran[n] += 1
            if n % 7 == 0:
                time.sleep(0.0002)
            return "noted"

        plugins = [self.told, Adds()] if self.way == "run with a plugin" else [self.told]
        self.agent = Agent(self.provider, tools=[note], plugins=plugins, memory=self.memory, limits=FREE)

    def play(self) -> str:
        """Run it; gives back how it ended. Raises `AssertionError` where that was not in order."""
        came = "nothing"
        thread = threading.Thread(target=self._strike)
        with self.agent:
            thread.start()
            try:
                self._run()
            except KeyboardInterrupt as error:
                before = getattr(error, "outcome", None) is None and not self.told.outcomes
                came = "ctrl-c before it began" if before else "ctrl-c"
            self.over.set()
            thread.join()
            self._look(came)
        alive = [one.name for one in threading.enumerate() if one.name.startswith("hookloop")]
        assert not alive, alive
        return f"{self.way}, {self.kind}: {came}, {[outcome.status for outcome in self.told.outcomes]}"

    def _run(self) -> None:
        if self.way != "stream":
            self.agent.run("go", conversation="c")
            return
        with self.agent.stream("go", conversation="c") as events:
            for _ in events:
                pass

    def _strike(self) -> None:
        time.sleep(self.delay)
        if self.over.is_set():
            return
        if self.kind == "cancel":
            with suppress(NoOpenTurn):
                self.agent.cancel("c")
        else:
            signal.pthread_kill(MAIN, signal.SIGINT)

    def _look(self, came: str) -> None:
        """Told once, stored as told, nothing run twice, and the conversation goes on."""
        ends = [entry.body.status for entry in self._entries() if isinstance(entry.body, TurnEnded)]
        told = [outcome.status for outcome in self.told.outcomes]
        assert len(told) <= (0 if came == "ctrl-c before it began" else 1), told  # none where it struck in `after_turn`
        assert not told or ends in (told, []), (ends, told)
        assert ends or not self._entries(), "it began and was not ended"
        assert max(self.ran.values(), default=0) <= 1, self.ran
        for outcome in self.told.outcomes:
            check(outcome.messages)
            answered = sum(len(message.results) for message in outcome.messages)
            assert answered >= len(self.ran), f"{len(self.ran)} calls ran, {answered} have a result"
            assert not outcome.warnings, outcome.warnings
        self.provider.steps = [say("next")] * (len(self.provider.requests) + 1)
        assert self.agent.run("and now?", conversation="c").text == "next"

    def _entries(self) -> Sequence[Entry]:
        return self.memory.load_memory("c", LoadQuery()).entries


def main(seed: int, turns: int) -> None:
    """Play them, and say how they ended."""
    chance, ends, late = random.Random(seed), Counter[str](), 0
    for _ in range(turns):
        try:
            ends[Turn(chance).play()] += 1
        except KeyboardInterrupt:
            late += 1  # it came when the turn was over already
    for how, count in ends.most_common():
        print(count, how)
    print(late, "struck outside")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
