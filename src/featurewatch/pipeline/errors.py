"""The exceptions of the pipeline.

``PipelineError`` is the base class, and the only one that callers need to catch. Its text is one
line: what happened, where, and what to do. Below it:

- `SparkMissingError`: Spark, or a Java that can run it, is not installed.
- `SparkStartError`: Spark does not start on the given master.
- `LakeError`: the lake cannot be read or written, or another process fills it.
- `TopicError`: the bus does not respond, or a topic is not the one that the lake holds.
- `RunError`: a query of the pipeline stopped.
- `ReplayError`: a replay ingested nothing; `ReplayUsageError`: its arguments are wrong.
"""

import re
from typing import Final

_FULL_DISK: Final = ("No space left on device", "Disk quota exceeded", "File too large")
_FULL_ADVICE: Final = (
    "make room for the lake and for temporary files (TMPDIR), and start again: it continues where "
    "it was, and nothing is lost"
)

_OTHER_BRONZE: Final = "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"
OTHER_BRONZE_ADVICE: Final = (
    "the lake's checkpoints count on another table bronze/messages than is there: put that one "
    "back, or fill a new lake with --lake"
)
_UNREADABLE: Final = re.compile(r"Encountered error while reading file (\S+)\.\s")
_QUOTED: Final = re.compile(r" (\(start marker )?at \[Source: .*")
"""Jackson appends the input that it was reading."""
_BACKTRACE: Final = re.compile(r"\n\s*0: .*", re.DOTALL)
"""Delta's Rust library appends its backtrace."""


class PipelineError(Exception):
    """Base of all errors of the pipeline; the text is one line for people."""


class SparkMissingError(PipelineError):
    """Spark, or a Java that can run it, is not installed on this machine."""


class SparkStartError(PipelineError):
    """Spark does not start on the given master."""


class LakeError(PipelineError):
    """The lake's tables are missing, unreadable or outdated, or another process fills them."""


class TopicError(PipelineError):
    """The topics cannot be read from where the lake ends."""


class RunError(PipelineError):
    """A query stopped that should have continued."""


def reason_in(trace: str) -> str:
    """Returns the innermost reason of a stack trace of Spark, as one line.

    Spark wraps a failure in its plan and in the traces of both languages. The line also names the
    file that could not be read, and what to do if the disk is full or bronze was replaced.
    """
    if _OTHER_BRONZE in trace:
        return OTHER_BRONZE_ADVICE
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    own_prefix = f"{PipelineError.__module__}."
    own_errors = [line.partition(": ")[2] for line in lines if line.startswith(own_prefix)]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    reason = (own_errors[-1:] or causes[-1:] or lines[:1] or ["no reason is given"])[0]
    reason = _QUOTED.sub("", reason)[:500]
    if file := _UNREADABLE.search(trace):
        reason = f"{file[1]} cannot be read: {reason}"
    return f"{reason}; {_FULL_ADVICE}" if _is_full(trace) else reason


def one_line(text: str) -> str:
    """Returns an error text of `deltalake` as one line, without the backtrace that may follow
    it."""
    return " ".join(_BACKTRACE.sub("", text).split())


def _is_full(trace: str) -> bool:
    """Whether a stack trace shows a full disk, an exceeded quota or a file-size limit."""
    return any(text in trace for text in _FULL_DISK)


class ReplayError(PipelineError):
    """A replay could not ingest anything."""


class ReplayUsageError(ReplayError):
    """The arguments of a replay are wrong: a path does not exist, or the cluster is unknown."""
