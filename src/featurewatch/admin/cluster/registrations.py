"""Removes the registration of a node that will not return, so that no level depends on it.

async with RegistrationAdmin.connect("kafka-1:9092") as admin:
    await admin.unregister(NodeKey(Role.CONTROLLER, NodeId(9)))
"""

from typing import ClassVar, Final

from featurewatch.admin.api_errors import UNSUPPORTED_VERSION
from featurewatch.admin.errors import KafkaApiError, check_response
from featurewatch.admin.session import AdminSession, NoSuchVersionError
from featurewatch.kafka import messages
from featurewatch.streams.types import NodeKey, Role

_UNREGISTER_BROKER: Final = 64
_UNREGISTER_CONTROLLER: Final = 94


class RegistrationAdmin(AdminSession):
    """Registrations of one cluster in KRaft mode; brokers forward the requests."""

    serves_controllers: ClassVar[bool] = True

    async def unregister(self, node: NodeKey) -> None:
        """Removes a node's registration: of a broker as KIP-631 has it, of a controller KIP-1312.

        A node that runs registers again, sooner or later; 4.4 refuses only to unregister the
        active controller.

        Raises:
            KafkaApiError: The node is not registered, the login may not do it, or
                (UNSUPPORTED_VERSION) the software or the finalized metadata.version is too old.
            UnreachableError: The controller was not reached in time; nothing was changed.
            OutcomeUnknownError: The request was sent, and no response came.
        """
        try:
            if node.role is Role.BROKER:
                await self._unregister_broker(node)
            else:
                await self._unregister_controller(node)
        except NoSuchVersionError as error:
            api = f"Unregister{str(node.role).capitalize()}"
            raise KafkaApiError(UNSUPPORTED_VERSION, f"no node serves {api}") from error

    async def _unregister_broker(self, node: NodeKey) -> None:
        request = messages.UnregisterBrokerRequestV0(broker_id=node.node_id)
        check_response(await self.perform(lambda _: request), _UNREGISTER_BROKER)

    async def _unregister_controller(self, node: NodeKey) -> None:
        request = messages.UnregisterControllerRequestV0(controller_id=node.node_id)
        check_response(await self.perform(lambda _: request), _UNREGISTER_CONTROLLER)
