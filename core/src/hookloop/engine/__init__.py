"""The engine: one pure generator per turn. It yields effects and knows no I/O, clock, randomness, pluggy or threads."""
