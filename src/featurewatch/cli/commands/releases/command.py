"""``featurewatch releases``: the releases of Kafka that are known, and how to learn others."""

from pathlib import Path
from typing import Annotated, Final

from featurewatch.cli.command_line import Argument, Option, command
from featurewatch.cli.config.options import AsJson, ConfigFile

_CASES: Final = 2000


@command("list")
def list_releases(config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Show the known Kafka releases, and where their tables come from."""
    # Here, so that help needs no tables.
    from featurewatch.cli.commands.releases.show import print_releases

    _check(config)
    print_releases(as_json=as_json)


@command()
def show(
    release: Annotated[str, Argument(metavar="RELEASE", help="A release, as in 4.5 or 4.5.0.")],
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Show what is known of one release: levels, features, records, and the sources."""
    from featurewatch.cli.commands.releases.show import print_release

    _check(config)
    print_release(release, as_json=as_json)


@command()
def learn(
    libs: Annotated[
        Path | None,
        Option(
            "--libs",
            metavar="DIRECTORY",
            help="Directory of an installed Kafka's jars, as /opt/kafka/libs.",
        ),
    ] = None,
    release: Annotated[
        str | None,
        Option(
            "--release",
            metavar="RELEASE",
            help="Release whose jars to fetch from Maven Central, as in 4.5.0.",
        ),
    ] = None,
    check: Annotated[
        bool,
        Option(
            "--check",
            help="Compare decisions with the release's own controller classes; exit code 3 if any "
            "differ.",
        ),
    ] = False,
    cases: Annotated[
        int,
        Option(metavar="COUNT", help="Number of random cases to compare.", min=1, max=1_000_000),
    ] = _CASES,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Learn the tables of a release that this version of featurewatch does not have.

    Reads the schemas of records from Kafka's jars and runs a program of featurewatch with Kafka's
    own classes, which needs Java 17 or newer. Writes a file to `releases.directory`, which other
    processes read when they start.
    """
    from featurewatch.cli.commands.releases.learn import LearnRequest, run

    _check(config)
    run(LearnRequest(libs, release, cases if check else 0), as_json=as_json)


def _check(config: Path | None) -> None:
    """Reports what is wrong with a configuration file, of which one setting is used here."""
    if config is not None:
        from featurewatch.cli.config.settings import load

        load(config)
