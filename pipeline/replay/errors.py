"""What a replay raises beside the other errors of the pipeline; the text is one line for a person.

::

    PipelineError
    └── ReplayError           nothing could be taken
        └── AskedError        what was asked for cannot be: the command was used wrongly
"""

from pipeline.errors import PipelineError


class ReplayError(PipelineError):
    """Nothing of what was given could be taken."""


class ReplayUsageError(ReplayError):
    """The question is wrong: a path that is not there, a cluster that nobody names."""
