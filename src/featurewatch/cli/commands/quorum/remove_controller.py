"""``featurewatch quorum remove-controller``: remove a voter (KIP-853)."""

from typing import Annotated

from featurewatch.cli.command_line import Option, command
from featurewatch.cli.commands.quorum.options import DryRun, Force, with_quorum_target
from featurewatch.cli.config.cluster_options import Yes
from featurewatch.cli.kafka_tools.target import AdminTarget


@command("remove-controller")
@with_quorum_target
async def remove_controller(
    target: AdminTarget,
    controller_id: Annotated[
        int, Option("--controller-id", "-i", metavar="ID", help="Id of the controller to remove.")
    ],
    controller_directory_id: Annotated[
        str,
        Option(
            "--controller-directory-id",
            "-d",
            metavar="ID",
            help="Directory id of the controller to remove, as describe shows it.",
        ),
    ],
    unregister: Annotated[
        bool,
        Option(
            "--unregister",
            help="Remove the registration of the controller too; needs Kafka 4.4.",
        ),
    ] = False,
    dry_run: DryRun = False,
    force: Force = False,
    yes: Yes = False,
) -> None:
    """Remove a voter, after checking that the others keep a majority.

    Shut the controller down first, unless there are only two voters: then both have to run until
    one is removed. If its registration cannot be removed afterwards, it is no longer a voter
    nevertheless.
    """
    # Here, so that help needs no client.
    from featurewatch.admin.errors import AdminError
    from featurewatch.admin.quorum.bootstrap import BOOTSTRAP_SERVERS, checks_of_bootstrap
    from featurewatch.admin.quorum.checks import (
        Check,
        check_of_unregistration,
        checks_of_removal,
    )
    from featurewatch.admin.quorum.client import QuorumAdmin
    from featurewatch.cli.commands.cluster.unregister import unregister_node
    from featurewatch.cli.commands.quorum.changes import Change, Consent, apply_change
    from featurewatch.cli.kafka_tools.errors import KafkaToolError
    from featurewatch.cli.kafka_tools.java import JavaError, parse_uuid
    from featurewatch.cli.kafka_tools.quorum import removed
    from featurewatch.streams.quorum import QuorumDescription, directory_text
    from featurewatch.streams.types import NodeId, NodeKey, Role

    target.addresses()
    if controller_id < 0:
        raise KafkaToolError(f"Invalid negative --controller-id: {controller_id}")
    try:
        parsed = parse_uuid(controller_directory_id)
    except JavaError as error:
        raise KafkaToolError(f"Failed to parse --controller-directory-id: {error}") from None
    # The zero id is that of a voter without one.
    directory_id = parsed if parsed.int else None
    node_id, directory = NodeId(controller_id), directory_text(parsed)

    def checks(quorum: QuorumDescription) -> tuple[Check, ...]:
        found = checks_of_removal(quorum, node_id, directory_id)
        return (*found, check_of_unregistration(quorum, node_id)) if unregister else found

    async def asks(admin: QuorumAdmin, quorum: QuorumDescription) -> tuple[Check, ...]:
        """Of brokers that do not answer, or through controllers, nothing is known."""
        if not target.servers:
            return ()
        try:
            servers = await admin.broker_setting(BOOTSTRAP_SERVERS)
        except AdminError:
            return ()
        return checks_of_bootstrap(quorum, node_id, servers)

    await apply_change(
        target,
        Change(
            action="remove",
            node_id=node_id,
            directory_id=directory_id,
            endpoints=(),
            checks=checks,
            send=lambda admin: admin.remove_voter(node_id, directory_id),
            line=lambda is_dry: removed(node_id, directory, dry_run=is_dry),
            asks=asks,
        ),
        Consent(dry_run, force, yes),
    )
    if unregister:
        await unregister_node(target, NodeKey(Role.CONTROLLER, node_id), yes=True)
