"""``featurewatch quorum add-controller``: make a running controller a voter (KIP-853)."""

from featurewatch.cli.command_line import command
from featurewatch.cli.commands.quorum.options import DryRun, Force, with_quorum_target
from featurewatch.cli.config.cluster_options import Yes
from featurewatch.cli.kafka_tools.target import AdminTarget


@command("add-controller")
@with_quorum_target
async def add_controller(
    target: AdminTarget, dry_run: DryRun = False, force: Force = False, yes: Yes = False
) -> None:
    """Make a running controller a voter, after checking that this keeps a majority.

    --command-config is the configuration file of that controller, as for Kafka's tool: run this
    on its machine, where meta.properties is. TLS and SASL settings of a client may be in it too.
    """
    # Here, so that help needs no client.
    from featurewatch.admin.quorum.checks import STATIC_VOTERS, checks_of_addition
    from featurewatch.cli.commands.quorum.changes import Change, Consent, apply_change
    from featurewatch.cli.config.client_config import client_part, read_properties
    from featurewatch.cli.errors import UsageError
    from featurewatch.cli.kafka_tools.controller_properties import read_candidate, unsendable
    from featurewatch.cli.kafka_tools.errors import KafkaToolError
    from featurewatch.cli.kafka_tools.quorum import added
    from featurewatch.cli.output.terminal import print_error
    from featurewatch.streams.quorum import directory_text

    target.addresses()
    file = target.command_config
    if file is None:
        raise KafkaToolError(
            "You must supply the configuration file of the controller you are adding when using "
            "add-controller."
        )
    if not file.exists():
        raise KafkaToolError(f"Properties file {file} does not exists!")
    properties = read_properties(file)
    candidate = read_candidate(properties)
    if not dry_run and (reason := unsendable(candidate)) is not None:
        raise UsageError(reason)
    node_id, directory = candidate.node_id, directory_text(candidate.directory_id)
    await apply_change(
        target,
        Change(
            action="add",
            node_id=node_id,
            directory_id=candidate.directory_id,
            endpoints=candidate.endpoints,
            checks=lambda quorum: checks_of_addition(quorum, candidate),
            send=lambda admin: admin.add_voter(
                node_id,
                candidate.directory_id,
                candidate.endpoints,
                cluster_id=candidate.cluster_id,
            ),
            line=lambda is_dry: added(node_id, directory, candidate.endpoints, dry_run=is_dry),
        ),
        Consent(dry_run, force, yes),
        client_part(properties),
    )
    if candidate.has_static_voters:
        print_error(STATIC_VOTERS)
