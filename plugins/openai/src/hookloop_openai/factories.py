"""The entry points: the one provider, with the profile of each name."""

from __future__ import annotations

from .provider import OpenAIProvider


def _named(name: str) -> type[OpenAIProvider]:
    """The provider with another profile from the start."""
    return type(name, (OpenAIProvider,), {"default_profile": name, "__doc__": f"The provider for {name}."})


openai = OpenAIProvider
azure = _named("azure")
deepseek = _named("deepseek")
mistral = _named("mistral")
gemini = _named("gemini")
ollama = _named("ollama")
vllm = _named("vllm")
llamacpp = _named("llamacpp")
groq = _named("groq")
openrouter = _named("openrouter")
together = _named("together")
xai = _named("xai")
