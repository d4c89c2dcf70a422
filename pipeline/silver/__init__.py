"""Silver: the messages as typed rows."""
