"""``featurewatch cluster unregister-broker`` and ``unregister-controller``, as kafka-cluster.sh."""

from typing import Annotated, Any, Final

from featurewatch.cli.command_line import Option, command
from featurewatch.cli.config.cluster_options import Config, Controller, Json, Server, Timeout, Yes
from featurewatch.cli.kafka_tools.options import with_target
from featurewatch.cli.kafka_tools.target import CLUSTER, AdminTarget
from featurewatch.streams.types import NodeId, NodeKey, Role

_OPTIONS: Final[dict[str, Any]] = {
    "bootstrap_server": Server,
    "bootstrap_controller": Controller,
    "command_config": Config,
    "as_json": Json,
    "timeout": Timeout,
}
_with_cluster_target = with_target(CLUSTER, _OPTIONS)

BrokerId = Annotated[int, Option("--id", "-i", min=0, metavar="ID", help="Id of the broker.")]
ControllerId = Annotated[
    int, Option("--id", "-i", min=0, metavar="ID", help="Id of the controller.")
]


@command("unregister-broker")
@_with_cluster_target
async def unregister_broker(target: AdminTarget, node_id: BrokerId, yes: Yes = False) -> None:
    """Remove the registration of a decommissioned broker.

    Every registered broker counts for every level, even if it does not run. If the broker still
    runs, the cluster refuses it from then on until it is restarted.
    """
    await unregister_node(target, NodeKey(Role.BROKER, NodeId(node_id)), yes=yes)


@command("unregister-controller")
@_with_cluster_target
async def unregister_controller(
    target: AdminTarget, node_id: ControllerId, yes: Yes = False
) -> None:
    """Remove the registration of a decommissioned controller.

    Needs Kafka 4.4 and metadata.version 33 (4.4-IV2). Remove a voter from the quorum and stop it
    first, because a running controller registers again.
    """
    await unregister_node(target, NodeKey(Role.CONTROLLER, NodeId(node_id)), yes=yes)


async def unregister_node(target: AdminTarget, node: NodeKey, *, yes: bool) -> None:
    """Removes a registration, and prints that; at a terminal it asks first, except with ``yes``.

    Raises:
        KafkaToolError: It was refused.
        AdminError: As `RegistrationAdmin.unregister`.
    """
    # Here, so that help needs no client.
    from featurewatch.admin.api_errors import UNSUPPORTED_VERSION, exception_text
    from featurewatch.admin.cluster.registrations import RegistrationAdmin
    from featurewatch.admin.errors import KafkaApiError
    from featurewatch.cli.kafka_tools import cluster as texts
    from featurewatch.cli.kafka_tools.errors import KafkaToolError
    from featurewatch.cli.output.confirmation import confirm, must_confirm

    target.addresses()
    if must_confirm(yes):
        confirm((), f"Remove the registration of {node}? [y/N] ")
    try:
        async with target.connect(RegistrationAdmin, changes=True) as admin:
            await admin.unregister(node)
    except KafkaApiError as error:
        if error.code == UNSUPPORTED_VERSION:
            target.line(texts.unsupported(node.role))
            raise KafkaToolError("", advice=texts.what_is_needed(node.role)) from None
        text = exception_text(error.code, str(error))
        raise KafkaToolError(text, right=error.right) from None
    target.line(texts.unregistered(node))
    target.document(lambda: {"unregistered": {"role": str(node.role), "id": node.node_id}})
