"""Gold: the outputs of the fold over the messages, as tables."""
