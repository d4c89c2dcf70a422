"""Errors that a command prints as one line, apart from what raises them, so that they load fast."""


class PortTakenError(Exception):
    """The address cannot be listened on; the text names it and says what to do."""


class WebConfigError(ValueError):
    """TLS or logins of an HTTP port cannot be used as they are set up; the text names the key."""


class SecurityError(ValueError):
    """A client property that cannot be used: the text names it and says what to write instead.

    ``key`` is the property to correct, for a message that says where it is; empty: none.
    """

    def __init__(self, text: str, key: str = "") -> None:
        super().__init__(text)
        self.key = key


class BusError(Exception):
    """A request to the bus failed; the text says what, where and what to do."""


class BusUnavailableError(BusError):
    """The bus does not respond."""


class TopicsChangedError(BusError):
    """Topics were made anew: who reads or writes them must begin anew."""


class BusSetupError(BusError):
    """The bus cannot be used as it is set up; waiting will not help, a person has to change it."""


class TopicMismatchError(BusSetupError):
    """A topic exists with other partitions or another cleanup policy than it must have."""


class PublishError(BusError):
    """A message cannot be delivered, and waiting will not help."""


class PublishDeniedError(PublishError, BusSetupError):
    """The bus' properties are wrong, or this login may not write."""


class FencedError(PublishError):
    """Another process has taken over; this one may not write any more."""


class EventTooLargeError(Exception):
    """One event is larger than the bus accepts; other messages are not affected."""
