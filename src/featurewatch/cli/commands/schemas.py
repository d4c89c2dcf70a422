"""``featurewatch schemas``: the schemas of the topics, for consumers in any language."""

from pathlib import Path
from typing import Annotated

from featurewatch.cli.command_line import Exit, Option, command
from featurewatch.cli.config.options import ConfigFile


@command()
def schemas(
    out: Annotated[
        Path | None, Option("--out", metavar="DIRECTORY", help="Directory to write the files to.")
    ] = None,
    register: Annotated[
        str,
        Option(
            metavar="URL",
            help="URL of a schema registry with Confluent's API, to register the schemas in.",
        ),
    ] = "",
    credentials: Annotated[
        Path | None,
        Option(metavar="FILE", help="File with user:password for the schema registry."),
    ] = None,
    ca: Annotated[
        Path | None,
        Option(
            "--ca",
            metavar="FILE",
            help="PEM file with the authorities that sign the registry's certificate.",
        ),
    ] = None,
    prefix: Annotated[
        str,
        Option(metavar="NAME", help="Prefix of the topics' names (default: that of the settings)."),
    ] = "",
    config: ConfigFile = None,
) -> None:
    """Write the JSON Schemas of the topics and their AsyncAPI description, or register them.

    The subject of a topic in the registry is the topic's name followed by `-value`.
    """
    # Here, so that help needs no settings and no registries.
    import json

    from featurewatch.cli.config.settings import load
    from featurewatch.cli.errors import ExitCode, UsageError
    from featurewatch.cli.output.generated_files import write_files
    from featurewatch.cli.output.terminal import print_error, print_line
    from featurewatch.integrations.schema_registry import Registry, RegistryError
    from featurewatch.streams.schemas import asyncapi, schema_of
    from featurewatch.streams.topics import ALL

    if not register or out is not None:
        texts = {
            f"{topic.short_name}.json": json.dumps(schema_of(topic), indent=2) + "\n"
            for topic in ALL
        }
        write_files(out, {**texts, "asyncapi.json": asyncapi().decode()})
    if not register:
        return
    try:
        login = credentials.read_text(encoding="utf-8").strip() if credentials else ""
        ids = Registry(register, login, ca).register(prefix or load(config).bus.prefix)
    except OSError as error:
        raise UsageError(f"{error.filename or credentials} cannot be read: {error}") from None
    except RegistryError as error:
        print_error(str(error))
        raise Exit(ExitCode.FAILED) from None
    for subject, number in ids.items():
        print_line(f"{subject}: id {number}")
