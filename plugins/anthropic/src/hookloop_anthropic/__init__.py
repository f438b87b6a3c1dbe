"""Claude for hookloop: the provider `anthropic`."""

from .options import Options, Prices
from .provider import AnthropicProvider

__all__ = ["AnthropicProvider", "Options", "Prices"]
