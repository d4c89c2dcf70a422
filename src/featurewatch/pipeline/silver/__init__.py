"""Silver: the events of the messages, as typed rows."""
