"""Histories in SQL databases, through SQLAlchemy."""

from .memory import SqlMemory
from .options import SqlOptions

__all__ = ["SqlMemory", "SqlOptions"]
