"""Errors that a command tells in one line, apart from what raises them, so that they load fast."""


class PortTakenError(Exception):
    """The address cannot be listened on; the text says which and what to do."""
