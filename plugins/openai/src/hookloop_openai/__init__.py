"""OpenAI and OpenAI-compatible endpoints as providers for hookloop."""

from .options import Options
from .profile import Profile, profiles
from .provider import OpenAIProvider
from .usage import Prices

__all__ = ["OpenAIProvider", "Options", "Prices", "Profile", "profiles"]
