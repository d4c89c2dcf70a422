"""``featurewatch features apply``: give clusters the levels of a file."""

from pathlib import Path
from typing import Annotated

from featurewatch.cli.command_line import Option, command
from featurewatch.cli.commands.features.common.options import FeaturesTarget, with_target
from featurewatch.cli.config.cluster_options import DryRun, Yes
from featurewatch.cli.config.options import ConfigFile
from featurewatch.cli.errors import UsageError


@command()
@with_target
async def apply(
    target: FeaturesTarget,
    file: Annotated[
        Path | None,
        Option("--file", "-f", metavar="FILE", help="YAML file with the desired levels."),
    ] = None,
    cluster: Annotated[
        list[str] | None,
        Option(
            "--cluster",
            metavar="NAME",
            help="Only this cluster of --config, by its name or id. Repeatable.",
        ),
    ] = None,
    config: ConfigFile = None,
    downgrade: Annotated[bool, Option("--downgrade", help="Allow levels to be lowered.")] = False,
    unsafe: Annotated[
        bool,
        Option(
            "--unsafe", help="With --downgrade: lower levels even if metadata may be lost for good."
        ),
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Give one cluster, or those of a configuration, the levels that a file desires.

    Without addresses, the clusters are those of --config. What is there already is not requested.
    Every cluster is read, and its controller validates the request, before the first is changed.
    """
    # Here, so that help needs no client.
    from featurewatch.cli.commands.features.common.apply_file import ApplyRequest, apply_file

    if target.dialect.is_draft:
        raise UsageError("the drafts of KIP-584 have no apply: use update")
    if file is None:
        raise UsageError("pass the file with the desired levels: -f levels.yaml")
    if unsafe and not downgrade:
        raise UsageError("--unsafe is about downgrades: pass --downgrade too")
    request = ApplyRequest(file, config, tuple(cluster or ()), downgrade, unsafe, dry_run, yes)
    await apply_file(target, request)
