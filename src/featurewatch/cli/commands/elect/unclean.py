"""``featurewatch elect unclean``."""

from featurewatch.cli.command_line import command
from featurewatch.cli.commands.elect.options import ElectionOptions, with_election_options


@command()
@with_election_options
async def unclean(options: ElectionOptions) -> None:
    """Elect a leader that is not in sync where there is no other; messages may be lost."""
    # Here, so that help needs no client.
    from featurewatch.admin.elections.client import ElectionType
    from featurewatch.cli.commands.elect.election import run_election

    await run_election(ElectionType.UNCLEAN, options)
