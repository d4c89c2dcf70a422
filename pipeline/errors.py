"""The errors of the pipeline.

``PipelineError`` is the only one that callers need to catch: one line that says what happened,
where, and what to do. Below it:

- `SparkMissingError`: Spark, or a Java that it runs on, is not there.
- `SparkStartError`: Spark does not start on the master that is named.
- `LakeError`: the lake cannot be used as it is.
- `TopicError`: the bus does not answer, or a topic is not the one that the lake holds.
- `RunError`: a part of the pipeline stopped.
"""

import re
from typing import Final

_FULL: Final = ("No space left on device", "Disk quota exceeded", "File too large")
_ROOM: Final = (
    "make room for the lake and for temporary files (TMPDIR), and start again: it goes on from "
    "where it was, and nothing is lost"
)

_OTHER_BRONZE: Final = "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"
_PUT_BACK: Final = (
    "the lake's checkpoints count on another table bronze/messages than is there: put that one "
    "back, or fill a new lake with --lake"
)
_UNREADABLE: Final = re.compile(r"Encountered error while reading file (\S+)\.\s")
_QUOTED: Final = re.compile(r" (\(start marker )?at \[Source: .*")
"""Jackson says at length what it was reading."""
_BACKTRACE: Final = re.compile(r"\n\s*0: .*", re.DOTALL)
"""What Delta's Rust library was doing, down to the threads of the system."""


class PipelineError(Exception):
    """Something of the pipeline failed; the text is one line for a person."""


class SparkMissingError(PipelineError):
    """Spark cannot be started on this machine."""


class SparkStartError(PipelineError):
    """Spark is there and does not start on the master that is named."""


class LakeError(PipelineError):
    """The lake's tables are not as they must be, or somebody else fills them."""


class TopicError(PipelineError):
    """The topics cannot be read on from where the lake ends."""


class RunError(PipelineError):
    """A query ended that should have gone on."""


def reason_in(trace: str) -> str:
    """The innermost reason that a stack trace of Spark names, in one line, the file that could not
    be read, and what to do if there was no room or the lake's bronze is another: Spark wraps a
    failure in its plan and in the traces of both languages."""
    if _OTHER_BRONZE in trace:
        return _PUT_BACK
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    own = f"{PipelineError.__module__}."
    ours = [line.partition(": ")[2] for line in lines if line.startswith(own)]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    reason = (ours[-1:] or causes[-1:] or lines[:1] or ["no reason is given"])[0]
    reason = _QUOTED.sub("", reason)[:500]
    if file := _UNREADABLE.search(trace):
        reason = f"{file[1]} cannot be read: {reason}"
    return f"{reason}; {_ROOM}" if _is_full(trace) else reason


def one_line(told: str) -> str:
    """What `deltalake` says of a failure, without the backtrace that may stand behind it."""
    return " ".join(_BACKTRACE.sub("", told).split())


def _is_full(trace: str) -> bool:
    """Whether a stack trace tells of a disk without room, or of a file that may not grow."""
    return any(words in trace for words in _FULL)


class ReplayError(PipelineError):
    """Nothing of what was given could be taken."""


class ReplayUsageError(ReplayError):
    """The question is wrong: a path that is not there, a cluster that nobody names."""
