"""What can go wrong when a cluster is asked or changed, by what is known of the cluster then.

    AdminError
    ├── RequestError         what is asked for cannot be asked; nothing was sent
    ├── UnreachableError     nobody could be asked; nothing was sent
    ├── UpdateRefusedError   the controller refused one update or more
    └── OutcomeUnknownError  a change was sent, and no answer says what came of it

The second and the last are also `streams.net.connection.NodeError`: the node is what failed.
"""

from featurewatch.streams.net.connection import NodeError


class AdminError(Exception):
    """A cluster could not be asked or changed; the text is one line for people."""


class RequestError(AdminError, ValueError):
    """What is asked for cannot be asked, whatever the cluster is. Nothing was sent."""


class UnreachableError(AdminError, NodeError):
    """No node, or not the one that it takes, could be asked. Nothing was changed."""


class UpdateRefusedError(AdminError):
    """The controller refused; the text is its own. Nothing of a 4.x request was applied."""


class OutcomeUnknownError(AdminError, NodeError):
    """A change was sent and its answer did not come: it may be applied or not (KIP-584).

    The cluster has to be read again to know.
    """
