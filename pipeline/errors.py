"""The errors of the pipeline.

``PipelineError`` is the only one that callers need to catch: one line that says what happened,
where, and what to do. Below it:

- `SparkMissingError`: Spark, or a Java that it runs on, is not there.
- `LakeError`: the lake cannot be used as it is.
- `TopicError`: the bus does not answer, or a topic is not the one that the lake holds.
- `RunError`: a part of the pipeline stopped.
"""


class PipelineError(Exception):
    """Something of the pipeline failed; the text is one line for a person."""


class SparkMissingError(PipelineError):
    """Spark cannot be started on this machine."""


class LakeError(PipelineError):
    """The lake's tables are not as they must be, or somebody else fills them."""


class TopicError(PipelineError):
    """The topics cannot be read on from where the lake ends."""


class RunError(PipelineError):
    """A query ended that should have gone on."""
