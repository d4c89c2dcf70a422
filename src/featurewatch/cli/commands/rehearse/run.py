"""Rehearses steps on the state of a cluster, and on a real controller where one is wanted."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.text import Text

from featurewatch.cli.command_line import Exit
from featurewatch.cli.commands.rehearse.partitions import (
    doubted,
    log_reading,
    rehearse_znodes,
    with_files,
)
from featurewatch.cli.commands.rehearse.real_controller import (
    RealRehearsal,
    rehearse_on_real_controller,
)
from featurewatch.cli.commands.rehearse.rendering import (
    difference_lines,
    document,
    head,
    paragraph,
    restarts,
    runs,
    zookeeper_document,
    zookeeper_head,
)
from featurewatch.cli.config import options
from featurewatch.cli.config.settings import ClusterSection, load
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.output import rendering
from featurewatch.cli.output.terminal import print_error
from featurewatch.cli.runtime.cluster_image import ClusterNotReadError, read_image
from featurewatch.common import yaml_file
from featurewatch.controller.kraft import (
    ControllerState,
    active_controller_id,
    controller_state,
    release_of,
)
from featurewatch.controller.kraft.releases import UnknownReleaseError
from featurewatch.controller.rehearsal.documents import overall
from featurewatch.controller.rehearsal.partition_steps import StepSyntaxError
from featurewatch.controller.rehearsal.partitions.metadata_log import PartitionLog
from featurewatch.controller.rehearsal.rehearse import StepOutcome, StepVerdict, rehearse
from featurewatch.controller.rehearsal.steps import (
    Step,
    is_about_partitions,
    parse,
    parse_document,
)
from featurewatch.controller.software import LEARN
from featurewatch.monitor.readiness.active_controller import active_controller, active_state
from featurewatch.monitor.readiness.upgrade_state import is_kraft
from featurewatch.tables.image.cluster import Authority, ClusterImage

_CODES = {
    StepVerdict.ACCEPTED: ExitCode.GOOD,
    StepVerdict.REFUSED: ExitCode.NO,
    StepVerdict.UNKNOWN: ExitCode.UNKNOWN,
}


def run(
    step: list[str],
    steps: Path | None,
    release: str,
    real_release: str,
    *,
    config: Path | None,
    given: dict[str, str | Path | None],
    min_isr: int | None = None,
    as_written: bool = False,
    as_json: bool,
) -> ExitCode:
    """Rehearses and prints; ``given`` are the flags that name the cluster.

    ``min_isr`` is min.insync.replicas of the topics that do not set it; ``as_written``: levels are
    decided on as KIP-778 describes.

    Raises:
        UsageError: A step, the cluster or a release is wrong.
        Exit: The cluster could not be read.
    """
    rehearsed = _steps(step, steps)
    if as_written and real_release:
        raise UsageError(
            "--as-written differs from every real controller: leave out one of the two"
        )
    cluster = _cluster(config, **given)
    log = PartitionLog() if any(map(is_about_partitions, rehearsed)) else None
    if log is not None and real_release:
        raise UsageError("--on-real-controller compares levels, not partitions: leave it out")
    try:
        image = read_image(cluster, reading=None if log is None else log_reading(log))
        if log is not None and image.authority is Authority.ZOOKEEPER:
            outcomes = rehearse_znodes(cluster, image, rehearsed, min_isr)
            return _show_zookeeper(image, outcomes, as_json=as_json)
        _check_led(image)
        if log is not None and image.authority is not Authority.LOG:
            raise UsageError(
                "partitions are in the metadata log: pass --bootstrap-controller or --log-directory"
            )
        if real_release:
            return _on_real(real_release, controller_state(image), rehearsed, as_json=as_json)
        name, state = _active(image, release)
    except ClusterNotReadError as error:
        print_error(str(error))
        raise Exit(ExitCode.UNKNOWN) from None
    whole = image.authority is Authority.LOG
    outcomes = rehearse(
        name,
        state,
        rehearsed,
        voters=image.log.quorum.voters,
        whole=whole,
        partitions=None if log is None else log.partitions(image, name, min_isr),
        as_written=as_written,
    )
    if log is not None:
        outcomes = doubted(outcomes, log.unreadable, "records")
    _show(name, state, outcomes, None, as_json=as_json)
    return _CODES[overall(outcomes)]


def _steps(given: Sequence[str], file: Path | None) -> list[Step]:
    """The steps of the file, then those of the command line; raises `UsageError`."""
    try:
        rehearsed = _from_file(file) if file is not None else []
        rehearsed += with_files([parse(text) for text in given])
    except StepSyntaxError as error:
        raise UsageError(str(error)) from None
    if not rehearsed:
        raise UsageError("there is nothing to rehearse: pass --step, as in --step stop:broker-2")
    return rehearsed


def _from_file(file: Path) -> list[Step]:
    try:
        return with_files(parse_document(yaml_file.read(file)))
    except yaml_file.YamlError as error:
        raise UsageError(str(error)) from None
    except StepSyntaxError as error:
        raise UsageError(f"{file}: {error}") from None


def _cluster(config: Path | None, **given: str | Path | None) -> ClusterSection:
    """The cluster named by flags, or of a configuration file; raises `UsageError`."""
    named = {name: value for name, value in given.items() if value}
    chosen = str(named.get("cluster_id", ""))
    if set(named) - {"cluster_id"}:
        return load(None, clusters=options.cluster_flags(**given)).clusters[0]
    listed = load(config).clusters
    matching = [cluster for cluster in listed if not chosen or cluster.cluster_id == chosen]
    if len(matching) == 1:
        return matching[0]
    if not listed:
        raise UsageError(
            "there is no cluster to rehearse with: pass --bootstrap-controller, --log-directory, "
            "--bootstrap-server or --zookeeper"
        )
    raise UsageError("the configuration lists several clusters: say which one with --cluster-id")


def _check_led(image: ClusterImage) -> None:
    """An active controller must be known.

    Raises:
        UsageError: The cluster has no KRaft controllers.
        ClusterNotReadError: Who is active is not known.
    """
    if image.authority is Authority.ZOOKEEPER:
        raise UsageError(
            "the cluster is in ZooKeeper mode: levels can be rehearsed only in KRaft mode"
        )
    if not is_kraft(image):
        raise ClusterNotReadError(
            "no node offers metadata.version, as in ZooKeeper mode: levels can be rehearsed only "
            "in KRaft mode"
        )
    if image.incomplete:
        raise ClusterNotReadError(
            f"no known release has the record {', '.join(image.incomplete)} in its log, so its "
            f"registrations, levels and voters are not known to be complete: {LEARN}"
        )
    if active_controller_id(image) < 0:
        raise ClusterNotReadError("which controller is active is not known: try again in a moment")


def _active(image: ClusterImage, release: str) -> tuple[str, ControllerState]:
    """The release of the active controller, and its state.

    Raises:
        UsageError: There is no such release.
        ClusterNotReadError: What the active controller runs is not known.
    """
    if release:
        try:
            return release_of(release).name, controller_state(image, release_of(release).ranges())
        except UnknownReleaseError as error:
            raise UsageError(str(error)) from None
    active = active_controller(image)
    if active.release is None:
        raise ClusterNotReadError(f"{active.doubt} Or name its release with --release")
    if active.assumed:
        raise ClusterNotReadError(
            f"the release of controller {active.node_id} is not known: below metadata.version 15 "
            "controllers do not register, and the features that it supports may be those of no "
            "known release: name its release with --release"
        )
    return active.release.name, active_state(image, active)


def _on_real(release: str, state: ControllerState, steps: list[Step], *, as_json: bool) -> ExitCode:
    real = rehearse_on_real_controller(release, state, steps)
    outcomes = [compared.outcome for compared in real.steps]
    _show(release_of(release).name, real.staged, outcomes, real, as_json=as_json)
    return ExitCode.FAILED if real.difference_count else _CODES[overall(outcomes)]


def _show(
    release: str,
    state: ControllerState,
    outcomes: Sequence[StepOutcome],
    real: RealRehearsal | None,
    *,
    as_json: bool,
) -> None:
    if as_json:
        rendering.print_json(document(release, state, outcomes, real))
        return
    console = rendering.console()
    for line in head(release, state):
        console.print(line, soft_wrap=True)
    for text in real.staging_differences if real else ():
        console.print(
            f"unequal {rendering.plain(text)}", style="yellow", soft_wrap=True, markup=False
        )
    for line in _steps_shown(outcomes, real):
        console.print(line, soft_wrap=True)
    if real and real.difference_count:
        console.print(
            f"{real.difference_count} differences to Kafka {real.kafka}", style="bold magenta"
        )


def _show_zookeeper(
    image: ClusterImage, outcomes: Sequence[StepOutcome], *, as_json: bool
) -> ExitCode:
    if as_json:
        rendering.print_json(zookeeper_document(image, outcomes))
    else:
        console = rendering.console()
        for line in (*zookeeper_head(image, outcomes), *_steps_shown(outcomes, None)):
            console.print(line, soft_wrap=True)
    return _CODES[overall(outcomes)]


def _steps_shown(outcomes: Sequence[StepOutcome], real: RealRehearsal | None) -> Iterator[Text]:
    """Every step; long runs of restarts together, where nothing is to be compared."""
    if real is not None:
        for number, compared in enumerate(real.steps, start=1):
            yield from paragraph(number, compared.outcome)
            yield from difference_lines(compared)
        return
    for number, run in runs(outcomes):
        yield from paragraph(number, run[0]) if len(run) == 1 else restarts(number, run)
