"""All conversations that this process shows, and whose they are.

A browser session sees what it began itself: the ids of its conversations begin with a digest of its session, so this
needs no table and holds over a restart. Shared on purpose, everybody sees all.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import re
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from hookloop_hookspecs import ConversationInfo, Entry, LoadQuery

from .agents import Describe, Talks
from .room import Busy, Room
from .stored import tell
from .story import Story

KEPT: Final = 200
"""Rooms that are kept in memory though nobody looks at them."""

LISTED: Final = 30
TITLED: Final = 400
"""Entries up to which a conversation is read for its title alone."""

ID: Final = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,119}$"


class Rooms:
    """Finds, opens and lists conversations.

    Arguments: `agent`; `describe`, makes plain data of its events; `shared`, everybody sees all; `turns`, how many may run
    at once.
    """

    def __init__(self, agent: Talks, describe: Describe, *, shared: bool = False, turns: int = 200) -> None:
        self.agent = agent
        self.shared = shared
        self._describe = describe
        self._turns = turns
        self._rooms: OrderedDict[str, Room] = OrderedDict()
        self._opening: dict[str, asyncio.Task[Room]] = {}
        self._kept = ""
        self._titles: dict[str, str] = {}
        self._memory = next((one for one in agent.memories if hasattr(one, "load_memory")), None)

    def new_id(self, session: str) -> str:
        """An id for a new conversation of a session."""
        return f"{_prefix(session)}{uuid.uuid4().hex[:12]}"

    def may_open(self, session: str, conversation: str) -> bool:
        """Whether a session may see a conversation."""
        return re.match(ID, conversation) is not None and (self.shared or conversation.startswith(_prefix(session)))

    async def open(self, conversation: str) -> Room:
        """The room of a conversation, with all that is stored of it."""
        if conversation not in self._rooms:
            task = self._opening.get(conversation)
            if task is None:
                task = self._opening[conversation] = asyncio.ensure_future(self._load(conversation))
                task.add_done_callback(lambda _: self._opening.pop(conversation, None))
            await asyncio.shield(task)
        self._rooms.move_to_end(conversation)
        return self._rooms[conversation]

    def keep(self, stories: Mapping[str, Story]) -> None:
        """Rooms of these conversations, for what stands in no store."""
        for id, story in stories.items():
            self._kept = id
            self._rooms[id] = Room(self.agent, id, self._describe, story)

    def check_room(self) -> None:
        """Raises `Busy` where as many turns run as may."""
        if sum(room.running for room in self._rooms.values()) >= self._turns:
            raise Busy("as many turns run as may; try again soon")

    async def listing(self, session: str) -> list[dict[str, Any]]:
        """The conversations of a session, newest first: id, title, when."""
        stored = [info for info in await self._stored() if self.may_open(session, info.conversation)][:LISTED]
        known = {info.conversation for info in stored}
        fresh = [room for room in self._rooms.values() if room.id not in known and self.may_open(session, room.id)]
        rows = [{"id": room.id, "title": room.story.title, "at": 0.0} for room in reversed(fresh) if room.story.title]
        for info in stored:
            rows.append({"id": info.conversation, "title": await self._title(info), "at": info.updated})
        return rows

    async def newest(self, session: str) -> str:
        """The newest conversation of a session; where it has none the newest that was kept, else a new id."""
        rows = [info for info in await self._stored() if info.conversation.startswith(_prefix(session))]
        if rows:
            return rows[0].conversation
        return self._kept or self.new_id(session)

    async def close(self) -> None:
        """End all turns."""
        await asyncio.gather(*(room.close() for room in self._rooms.values()))

    async def _load(self, conversation: str) -> Room:
        story = Story()
        story.take_all(tell(await self._entries(conversation)))
        room = self._rooms[conversation] = Room(self.agent, conversation, self._describe, story)
        self._forget()
        return room

    def _forget(self) -> None:
        """Let go of the rooms that were not opened for the longest time."""
        idle = [id for id, room in self._rooms.items() if not room.running and not room.watched]
        for id in idle[: max(0, len(self._rooms) - KEPT)]:
            del self._rooms[id]

    async def _entries(self, conversation: str) -> Sequence[Entry]:
        if self._memory is None:
            return ()
        loaded = await _asked(self._memory.load_memory, conversation=conversation, query=LoadQuery())
        return loaded.entries if loaded is not None else ()

    async def _stored(self) -> Sequence[ConversationInfo]:
        if self._memory is None or not hasattr(self._memory, "conversations"):
            return ()
        found: Sequence[ConversationInfo] = await _asked(self._memory.conversations)
        return found

    async def _title(self, info: ConversationInfo) -> str:
        room = self._rooms.get(info.conversation)
        if room is not None:
            return room.story.title or info.conversation
        if info.conversation not in self._titles and info.entries <= TITLED:
            story = Story()
            story.take_all(tell(await self._entries(info.conversation)))
            self._titles[info.conversation] = story.title
        return self._titles.get(info.conversation) or info.conversation


def _prefix(session: str) -> str:
    return f"web-{hashlib.sha256(session.encode()).hexdigest()[:16]}-"


async def _asked(function: Any, **arguments: Any) -> Any:
    """A store's method with the arguments that it names: awaited where it is async, in a thread where it may block."""
    names = inspect.signature(function).parameters
    wanted = {name: value for name, value in arguments.items() if name in names}
    if inspect.iscoroutinefunction(function):
        return await function(**wanted)
    return await asyncio.to_thread(function, **wanted)
