"""``featurewatch dashboards``: dashboards for Grafana."""

from pathlib import Path
from typing import Annotated

from featurewatch.cli.command_line import Option, command
from featurewatch.cli.config.options import ConfigFile


@command()
def dashboards(
    out: Annotated[
        Path | None, Option("--out", metavar="DIRECTORY", help="Directory to write the files to.")
    ] = None,
    config: ConfigFile = None,
) -> None:
    """Write the Grafana dashboards and the provisioning that loads them.

    With `web.external_url` in the configuration, they link to the page.
    """
    # Here, so that help needs no settings and no registries.
    from featurewatch.cli.config.settings import load
    from featurewatch.cli.output.generated_files import write_files
    from featurewatch.integrations.grafana.files import dashboard_files

    write_files(out, dashboard_files(load(config).web.external_url))
