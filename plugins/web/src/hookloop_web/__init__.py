"""A page for any hookloop agent, and the parts that other pages are made of."""

from .agents import Talks, Told
from .console import Console
from .guard import Guard, GuardOptions
from .room import Room
from .rooms import Rooms
from .serving import address, listen, serve
from .site import Site, SiteOptions
from .story import Story

__all__ = [
    "Console",
    "Guard",
    "GuardOptions",
    "Room",
    "Rooms",
    "Site",
    "SiteOptions",
    "Story",
    "Talks",
    "Told",
    "address",
    "listen",
    "serve",
]
