"""The errors of the embedded stack.

Callers only need to catch ``StackError``. Its text is one line: what happened, where, and what to
do. Its subclasses:

- `ArtifactError`: Kafka's jars could not be found or fetched.
- `JavaError`: no Java runtime can run Kafka.
- `StartError`: a process ended, or did not become ready in time.
- `WireError`: a node did not respond, or its response could not be read.
- `RefusedError`: a node responded with an error code.
"""


class StackError(Exception):
    """An operation of the stack failed; the text is one line for a person."""


class ArtifactError(StackError):
    """Kafka's jars could not be found or fetched."""


class JavaError(StackError):
    """No usable Java runtime was found."""


class StartError(StackError):
    """A process did not become ready."""


class WireError(StackError):
    """A node or ZooKeeper could not be reached, or its response could not be read."""


class RefusedError(WireError):
    """A node responded with an error code.

    ``code`` and ``name`` are those of Kafka's ``Errors``. ``message`` is Kafka's own text; it is
    empty if the response has no such field.
    """

    def __init__(self, what: str, code: int, name: str, message: str) -> None:
        super().__init__(f"{what}: {name}" + (f": {message}" if message else ""))
        self.code = code
        self.name = name
        self.message = message
