"""The errors of the embedded stack.

``StackError`` is the only one that callers need to catch: one line that says what happened, where,
and what to do. Below it:

- `ArtifactError`: Kafka's jars could not be had.
- `JavaError`: there is no Java that can run Kafka.
- `StartError`: a process ended or stayed silent while it was started.
- `WireError`: a node did not answer, or answered with an error.
"""


class StackError(Exception):
    """Something of the stack failed; the text is one line for a person."""


class ArtifactError(StackError):
    """Kafka's jars could not be found or fetched."""


class JavaError(StackError):
    """No usable Java runtime was found."""


class StartError(StackError):
    """A process did not become ready."""


class WireError(StackError):
    """A node or ZooKeeper could not be reached, or what it said makes no sense."""


class RefusedError(WireError):
    """A node answered with an error of Kafka's.

    ``code`` is Kafka's number, ``name`` its name in Kafka's list, ``message`` Kafka's own text,
    empty where the response has no room for one.
    """

    def __init__(self, what: str, code: int, name: str, message: str) -> None:
        super().__init__(f"{what}: {name}" + (f": {message}" if message else ""))
        self.code = code
        self.name = name
        self.message = message
