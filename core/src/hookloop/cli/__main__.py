"""`python -m hookloop.cli`."""

from .main import main

main()
