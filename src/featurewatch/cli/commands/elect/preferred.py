"""``featurewatch elect preferred``."""

from featurewatch.cli.command_line import command
from featurewatch.cli.commands.elect.options import ElectionOptions, with_election_options


@command()
@with_election_options
async def preferred(options: ElectionOptions) -> None:
    """Make the first replica of each partition its leader, if it is in sync."""
    # Here, so that help needs no client.
    from featurewatch.admin.elections.client import ElectionType
    from featurewatch.cli.commands.elect.election import run_election

    await run_election(ElectionType.PREFERRED, options)
