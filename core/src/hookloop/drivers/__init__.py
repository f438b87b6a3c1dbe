"""The drivers perform what the engine yields: one for sync runs, one for async ones, over the same logic."""
