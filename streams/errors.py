"""Errors that a command tells in one line, apart from what raises them, so that they load fast."""


class PortTakenError(Exception):
    """The address cannot be listened on; the text says which and what to do."""


class BusError(Exception):
    """The bus did not do what was asked; the text says what, where and what to do."""


class BusUnavailableError(BusError):
    """The bus does not answer."""


class TopicMismatchError(BusError):
    """A topic exists with other partitions or another cleanup policy than it must have."""


class PublishError(BusError):
    """A message cannot be delivered, and waiting will not help."""
