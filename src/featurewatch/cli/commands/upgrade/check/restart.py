"""``featurewatch upgrade check restart``: may this node be restarted now?"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from featurewatch.cli.command_line import Exit, Option, command
from featurewatch.cli.commands.upgrade.options import (
    AcceptOption,
    UpgradeSource,
    release_name,
    with_source,
)

if TYPE_CHECKING:
    from featurewatch.monitor.upgrade import RestartReport

_POLL_S = 3.0
_ACCEPTED = frozenset(
    {"brokers", "quorum", "partitions", "reassignments", "unreplicated", "min-isr"}
    | {"in-sync", "last-restarted", "levels", "snapshot"}
)
"""The checks that a person may overrule; without the others nothing is known."""


@command()
@with_source
def restart(
    source: UpgradeSource,
    node: Annotated[int, Option("--node", "-n", metavar="ID", min=0, help="Id of the node.")],
    margin: Annotated[
        int,
        Option(
            "--margin",
            metavar="REPLICAS",
            min=0,
            max=100,
            help="Replicas that stay in sync beyond min.insync.replicas.",
        ),
    ] = 0,
    min_isr: Annotated[
        int | None,
        Option(
            "--min-isr",
            metavar="REPLICAS",
            min=1,
            help="min.insync.replicas of topics that do not set it, instead of the brokers'.",
        ),
    ] = None,
    release: Annotated[
        str,
        Option(
            "--release",
            metavar="RELEASE",
            help="Kafka release to start on, if levels changed for it: checks that it starts.",
        ),
    ] = "",
    node_directory: Annotated[
        Path | None,
        Option(
            "--node-directory",
            metavar="DIRECTORY",
            help="With --release: the node's metadata.log.dir, to see what it loads at start.",
        ),
    ] = None,
    accept: AcceptOption = None,
    wait: Annotated[
        bool, Option("--wait", help="Wait until the answer is yes, or waiting cannot help.")
    ] = False,
    timeout: Annotated[
        float,
        Option("--timeout", metavar="SECONDS", min=1, help="Longest time to wait with --wait."),
    ] = 1800.0,
) -> None:
    """Check whether a node may be restarted now: ISRs, quorum, reassignments.

    No partition may fall below min.insync.replicas plus --margin, the quorum must keep its
    majority, nothing may be moving, and the broker that was restarted last must have returned to
    all ISRs. While the metadata is in ZooKeeper, the brokers are asked for their partitions
    (--bootstrap-server). With --release, the node must not load a level which that release does
    not support: after levels were changed for it, the node needs a new metadata snapshot, which
    --node-directory shows. Exits with 0 if so, with 3 if not, with 4 if it is unknown.
    """
    # Here, so that help needs no settings and no engines.
    import time

    from featurewatch.cli.commands.upgrade.rendering import (
        CODES,
        restart_document,
        restart_lines,
    )
    from featurewatch.cli.errors import UsageError
    from featurewatch.cli.output import rendering

    if unknown := sorted({*(accept or ())} - _ACCEPTED):
        raise UsageError(f"--accept {unknown[0]}: it takes {', '.join(sorted(_ACCEPTED))}")

    if node_directory and not release:
        raise UsageError("--node-directory needs --release, the one to start on")
    start = _Start(release_name(release, "--release"), node_directory)

    def ask() -> "RestartReport":
        return _answer(source, node, margin, min_isr, frozenset(accept or ()), start)

    report = ask()
    if wait:
        report = wait_for(report, ask, timeout, time.monotonic, time.sleep)
    if source.as_json:
        rendering.print_json(restart_document(report))
    else:
        console = rendering.console()
        for line in restart_lines(report):
            console.print(line, soft_wrap=True)
    raise Exit(CODES[report.verdict])


def wait_for(
    report: "RestartReport",
    ask: "Callable[[], RestartReport]",
    timeout_s: float,
    monotonic: Callable[[], float],
    pause: Callable[[float], None],
) -> "RestartReport":
    """The first answer of yes, or the last one: in time, or once waiting does not help."""
    from featurewatch.cli.output.terminal import print_note
    from featurewatch.controller.compatibility import Verdict

    deadline, said = monotonic() + timeout_s, ""
    while report.verdict is not Verdict.YES and report.can_wait and monotonic() < deadline:
        missing = next(check for check in report.checks if check.verdict is not Verdict.YES)
        line = f"waiting: {missing.name}: {missing.text}"
        if line != said:
            print_note(line)
            said = line
        pause(_POLL_S)
        report = ask()
    return report


class _Start(NamedTuple):
    """The release that the node starts on (empty: as before), and its directory."""

    release: str
    directory: Path | None


def _answer(
    source: UpgradeSource,
    node: int,
    margin: int,
    min_isr: int | None,
    accept: frozenset[str],
    start: _Start,
) -> "RestartReport":
    import time
    from dataclasses import replace

    from featurewatch.cli.commands.upgrade.reading import (
        MIN_ISR,
        ask_brokers,
        ask_partitions,
        ask_quorum,
        highest_min_isr,
        read_startup_of,
        read_state,
    )
    from featurewatch.cli.errors import UsageError
    from featurewatch.controller.compatibility import Verdict
    from featurewatch.controller.kraft.releases import release_of
    from featurewatch.monitor.upgrade import (
        RestartRequest,
        accepted,
        check_restart,
        is_in_zookeeper,
        start_checks,
    )
    from featurewatch.streams.types import NodeId, Role

    state, limits = read_state(source)
    node_id = NodeId(node)
    asks_brokers = is_in_zookeeper(state.image, node_id)
    if asks_brokers and start.release:
        raise UsageError("--release: the metadata is in ZooKeeper, which has no such levels")
    request = RestartRequest(
        node_id,
        int(time.time() * 1000),
        margin,
        min_isr,
        None if asks_brokers else ask_quorum(source),
        accept,
        ask_partitions(source) if asks_brokers else None,
    )
    report = check_restart(state, request, limits)
    unknown = {check.name for check in report.checks if check.verdict is Verdict.UNKNOWN}
    if "min-isr" in unknown and source.servers:
        brokers = [
            key.node_id
            for key, one in state.image.nodes.nodes.items()
            if key.role is Role.BROKER and not one.fenced
        ]
        highest = highest_min_isr(ask_brokers(source, (MIN_ISR,)), brokers)
        report = check_restart(state, replace(request, min_isr=highest), limits)
    if start.release and "log" not in unknown:
        startup = read_startup_of(start.directory, state.image.cluster, node_id)
        more = start_checks(node_id, release_of(start.release), state.image.features, startup)
        report = replace(report, checks=(*report.checks, *accepted(more, accept)))
    return report
