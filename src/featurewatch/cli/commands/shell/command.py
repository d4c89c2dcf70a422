"""``featurewatch shell``: the commands of one cluster, one after another."""

import sys
from typing import Annotated

from featurewatch.cli.command_line import Exit, Option, command
from featurewatch.cli.config.cluster_options import Config, Controller, Server


@command()
def shell(
    bootstrap_server: Server = None,
    bootstrap_controller: Controller = None,
    command_config: Config = None,
    lines: Annotated[
        list[str] | None,
        Option(
            "--command",
            "-c",
            metavar="LINE",
            help="Run this line instead of typed ones. Repeatable.",
        ),
    ] = None,
) -> None:
    """Run commands for one cluster interactively, with completion and a history.

    The commands are features, topics, cluster, quorum, reassign, elect, readiness, rehearse and
    upgrade, as on the command line, without the options that name the cluster. Without a terminal,
    lines of stdin are run up to the first that fails, whose exit code is the shell's.
    """
    # Here, so that help needs none of it.
    from featurewatch.cli.commands.shell.line_runner import LineRunner
    from featurewatch.cli.commands.shell.script import run_script, standard_lines
    from featurewatch.cli.commands.shell.target import shell_target
    from featurewatch.cli.kafka_tools.session import shell_session

    target = shell_target(bootstrap_server, bootstrap_controller, command_config)
    if lines is None and sys.stdin.isatty() and sys.stdout.isatty():
        from featurewatch.cli.commands.shell.interactive import require_terminal, run_terminal

        require_terminal()
        with shell_session():
            raise Exit(run_terminal(target))
    with shell_session():
        if lines is None:
            code = run_script(standard_lines(), LineRunner(target), numbered=True)
        else:
            texts = [text for line in lines for text in line.split("\n")]
            code = run_script(texts, LineRunner(target), numbered=len(texts) > 1)
    raise Exit(code)
