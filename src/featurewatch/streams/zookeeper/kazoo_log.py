"""Why there is no connection: kazoo only logs it; here it becomes a line that says what to do."""

import logging
from typing import Final

from featurewatch.common.text import quoted
from featurewatch.streams.zookeeper.settings import ZookeeperSettings

_ADVICE: Final = (
    ("Connection refused", "nobody listens there: is ZooKeeper up, are address and port right?"),
    ("Cannot resolve", "{reason}: is the name right?"),
    ("No host resolved", "none of the names can be resolved: are they right?"),
    (
        "Too many open files",
        "this process has no file descriptor left: raise its limit (ulimit -n)",
    ),
    ("RequireSasl", "it takes no session without a login, or not this one: check sasl.username"),
    ("SASL", "the login is refused: check sasl.username and sasl.password"),
    ("AUTH_FAILED", "the login is refused: check sasl.username and sasl.password"),
)

_TICKET_ADVICE: Final = (
    "the login by Kerberos is refused: check that the server's keytab has the current key of "
    "{service}/…, that the clocks agree, and the server's log"
)


class KazooLogHandler(logging.Handler):
    """Listens to kazoo's warnings and keeps the newest as ``reason``, one line."""

    def __init__(self, settings: ZookeeperSettings) -> None:
        super().__init__(logging.WARNING)
        self._where = settings.connect_string
        self._rejected = False
        tickets = settings.login.tickets
        self._service = "" if tickets is None else tickets.login.service
        """The first part of the servers' principals; empty: the login is not by Kerberos."""
        self._failure = ""
        """Why a login by Kerberos was not completed here, until the next line of kazoo's."""
        self.reason = f"connecting to ZooKeeper at {self._where}"

    def login_wanted(self) -> None:
        """The server rejected the session in its response, and closes the connection next."""
        self._set_reason("RequireSasl")
        self._rejected = True

    def login_failed(self, line: str) -> None:
        """A login by Kerberos failed on this side; kazoo, which logs next, does not say why."""
        self._failure = line

    def emit(self, record: logging.LogRecord) -> None:
        """Called by kazoo's threads."""
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text = f"{type(record.exc_info[1]).__name__}: {record.exc_info[1]}"
        if text.startswith(("Transition to", "Session has expired", "Failed connecting")):
            return
        if not (self._rejected and "broken" in text):
            self._set_reason(text)

    def _set_reason(self, text: str) -> None:
        reason = text.removeprefix("Connection dropped: ").removeprefix("socket connection error: ")
        reason = quoted(" ".join(reason.split()))
        self.reason = (
            f"ZooKeeper at {self._where} cannot be used: {self._advice(text).format(reason=reason)}"
        )

    def _advice(self, text: str) -> str:
        """What kazoo's line means, with a place for it if it says more."""
        if self._failure and "AUTH_FAILED" in text:
            failure, self._failure = self._failure, ""
            return failure.replace("{", "{{").replace("}", "}}")
        if self._service and ("SASL" in text or "Sasl" in text):
            return _TICKET_ADVICE.replace("{service}", self._service)
        template = next((advice for sign, advice in _ADVICE if sign in text), None)
        if template is not None:
            return template
        if "broken" in text or "time-out" in text:
            return "{reason}: it takes no sessions; has it lost its quorum, or does it want TLS?"
        return "{reason}"
