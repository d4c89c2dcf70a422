"""Gold: what the fold makes of the messages, as tables."""
