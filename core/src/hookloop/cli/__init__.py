"""The command line. The only package that imports typer, rich and tomlkit."""

from .main import main

__all__ = ["main"]
