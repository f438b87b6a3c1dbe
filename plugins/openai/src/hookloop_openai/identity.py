"""Who is asked, and through which endpoint: what decides which thinking and opaque parts may go back."""

from __future__ import annotations

from dataclasses import dataclass

from hookloop_hookspecs import Opaque, Thinking

from .profile import Profile
from .values import Json
from .wire_text import homecoming


@dataclass(frozen=True, slots=True)
class Identity:
    """A provider as parts remember it: `tag` names profile and endpoint, `family` the model family."""

    name: str
    tag: str
    family: str
    model: str
    profile: Profile
    vision: bool = True

    def owns(self, part: Thinking | Opaque) -> bool:
        """True where this part was made here, so that it may go back."""
        return part.provider == self.tag and part.family == self.family

    def home(self, extra: str) -> Json:
        """The metadata in `extra` where it was made here, else nothing."""
        return homecoming(extra, self.tag, self.family)
