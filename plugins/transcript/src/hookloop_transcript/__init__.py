"""Conversations as plain text files that people read."""

from .memory import TranscriptMemory

__all__ = ["TranscriptMemory"]
