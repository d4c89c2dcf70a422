"""The errors of the bus, apart from what raises them: commands that print them load fast."""


class BusError(Exception):
    """A request to the bus failed; the text says what, where and what to do."""


class BusUnavailableError(BusError):
    """The bus does not respond."""


class TopicsChangedError(BusError):
    """Topics were recreated: their readers and writers must restart."""


class OffsetExpiredError(BusError):
    """A partition has no message at the offset to read: it expired, or the topic is another one."""


class BusSetupError(BusError):
    """The bus cannot be used as it is set up; waiting will not help, a person has to change it."""


class BusPropertiesError(BusSetupError):
    """The client properties of the bus are wrong; the argument is librdkafka's reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the bus' properties are wrong: {reason}")


class TopicMismatchError(BusSetupError):
    """A topic exists with other partitions or another cleanup policy than it must have."""


class PublishError(BusError):
    """A message cannot be delivered, and waiting will not help."""


class PublishDeniedError(PublishError, BusSetupError):
    """The bus' properties are wrong, or this login may not write."""


class FencedError(PublishError):
    """Another process has taken over; this one may no longer write."""


class EventTooLargeError(Exception):
    """One event is larger than the bus accepts; other messages are not affected."""
