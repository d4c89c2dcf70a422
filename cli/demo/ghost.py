"""A controller that registers and does not exist: what remains of a node that was taken away."""

from collections.abc import Mapping
from uuid import uuid4

from kio.schema.controller_registration.v0 import request as form
from kio.schema.controller_registration.v0.response import ControllerRegistrationResponse
from kio.schema.errors import ErrorCode
from kio.static.primitive import i16, i32, u16

from deploy.errors import StackError
from streams.kraft.address import Address, parse_addresses
from streams.kraft.connection import open_connection
from streams.types import NodeId

_TIMEOUT_S = 5.0


class Ghost:
    """Registers a controller by KIP-919's request; there is never a process behind it."""

    def __init__(self, controllers: str, node_id: NodeId) -> None:
        self._addresses = parse_addresses(controllers)
        self._node_id = node_id

    async def register(self, supported: Mapping[str, tuple[int, int]]) -> None:
        """Registers it with these supported ranges, at whichever controller is active.

        Raises:
            StackError: No controller took it.
        """
        refusal = "no controller was asked"
        for address in self._addresses:
            refusal = await self._register_at(address, supported)
            if not refusal:
                return
        raise StackError(f"controller {self._node_id} could not be registered: {refusal}")

    async def _register_at(self, address: Address, supported: Mapping[str, tuple[int, int]]) -> str:
        request = form.ControllerRegistrationRequest(
            controller_id=i32(self._node_id),
            incarnation_id=uuid4(),
            zk_migration_ready=False,
            listeners=(
                form.Listener(
                    name="CONTROLLER", host="127.0.0.1", port=u16(1), security_protocol=i16(0)
                ),
            ),
            features=tuple(
                form.Feature(
                    name=name, min_supported_version=i16(low), max_supported_version=i16(high)
                )
                for name, (low, high) in supported.items()
            ),
        )
        try:
            connection = await open_connection(address, timeout_s=_TIMEOUT_S)
        except ConnectionError as error:
            return str(error)
        try:
            answer = await connection.request(request, ControllerRegistrationResponse, _TIMEOUT_S)
        except ConnectionError as error:
            return str(error)
        finally:
            await connection.close()
        return "" if answer.error_code is ErrorCode.none else answer.error_code.name
