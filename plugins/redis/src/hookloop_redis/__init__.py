"""Histories in Redis."""

from .memory import RedisMemory
from .options import RedisOptions

__all__ = ["RedisMemory", "RedisOptions"]
