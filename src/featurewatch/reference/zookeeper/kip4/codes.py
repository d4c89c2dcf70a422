"""The codes of KIP-4's draft, and the failures of its administrative requests.

AdminRequestFailedError       21, with the reason
NotControllerForAdminError    22, with the id of the broker that was sent the request
"""

from enum import IntEnum
from typing import Final

NO_ERROR: Final = 0
ADMIN_REQUEST_FAILED: Final = 21
NOT_CONTROLLER_FOR_ADMIN_REQUEST: Final = 22

UNEXPECTED_ERROR: Final = "Unexpected error occurred while processing Admin request."
"""The draft's description of code 21, where no other reason is known than an error in the code."""


class ReassignmentCode(IntEnum):
    """The status of a reassignment, as the draft and the tools up to Kafka 2.5 number it."""

    FAILED = -1
    IN_PROGRESS = 0
    COMPLETED = 1


class AdminRequestFailedError(Exception):
    """The request failed, and the text is its ErrorDescription."""


class NotControllerForAdminError(Exception):
    """This node is not the controller, or has not read the cluster yet.

    ``broker_id`` is the node's own id; the text is the one that the draft gives.
    """

    def __init__(self, broker_id: int) -> None:
        super().__init__(f"Target broker (id={broker_id}) is not serving a controller's role.")
