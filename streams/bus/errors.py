"""What can go wrong with the bus.

::

    BusError
    ├── BusUnavailableError   nobody answers: try again
    ├── TopicMismatchError    a topic is not what it must be: a person has to decide
    └── PublishError          a message will never be delivered: the source must start again
"""


class BusError(Exception):
    """The bus did not do what was asked; the text says what, where and what to do."""


class BusUnavailableError(BusError):
    """The bus does not answer."""


class TopicMismatchError(BusError):
    """A topic exists with other partitions or another cleanup policy than it must have."""


class PublishError(BusError):
    """A message cannot be delivered, and waiting will not help."""
