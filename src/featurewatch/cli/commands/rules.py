"""``featurewatch rules``: alerting rules for Prometheus."""

from pathlib import Path
from typing import Annotated

from featurewatch.cli.command_line import Option, command
from featurewatch.cli.config.options import ConfigFile


@command()
def rules(
    out: Annotated[
        Path | None, Option("--out", metavar="DIRECTORY", help="Directory to write the file to.")
    ] = None,
    form: Annotated[
        str,
        Option(
            "--format",
            metavar="FORMAT",
            help="prometheus: a rules file; operator: a PrometheusRule for Kubernetes.",
            default="prometheus",
        ),
    ] = "",
    runbooks: Annotated[
        str,
        Option(
            metavar="URL",
            help="URL where you serve docs/runbooks, for links in alerts.",
            default="docs/runbooks",
        ),
    ] = "",
    config: ConfigFile = None,
) -> None:
    """Write the alerting rules for Prometheus.

    With `web.external_url` in the configuration, the alerts link to the page.
    """
    # Here, so that help needs no settings and no registries.
    from featurewatch.cli.config.settings import load
    from featurewatch.cli.errors import UsageError
    from featurewatch.cli.output.generated_files import write_files
    from featurewatch.integrations.alert_kinds import DEFAULT_RUNBOOKS
    from featurewatch.integrations.prometheus.files import RulesFormat, rules_file

    try:
        rules_format = RulesFormat(form or "prometheus")
    except ValueError:
        raise UsageError(f"there is no format {form}: use prometheus or operator") from None
    page = load(config).web.external_url
    name, text = rules_file(rules_format, runbooks or DEFAULT_RUNBOOKS, page)
    write_files(out, {name: text})
