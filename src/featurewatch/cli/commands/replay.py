"""``featurewatch replay``: logs, snapshots and support bundles into the lake, without a cluster."""

import json
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from featurewatch.cli.command_line import Argument, Exit, Option, command
from featurewatch.cli.config.lake import Master
from featurewatch.cli.config.options import AsJson, ConfigFile, LakeRoot
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.output.terminal import print_error, print_json_text, print_line

if TYPE_CHECKING:
    from featurewatch.pipeline.replay.assembly import ClusterReplay
    from featurewatch.pipeline.replayed import SavedReplay


@command()
def replay(
    paths: Annotated[
        list[Path],
        Argument(
            metavar="PATH...",
            help="Segments, snapshots, directories, archives, or output of kafka-dump-log.",
        ),
    ],
    config: ConfigFile = None,
    lake: LakeRoot = "",
    cluster: Annotated[
        str,
        Option("--cluster", metavar="ID", help="Id of the cluster, if no meta.properties has it."),
    ] = "",
    master: Master = "local[*]",
    as_json: AsJson = False,
) -> None:
    """Ingest metadata logs, snapshots and support bundles into the lake, offline."""
    # Here, so that help needs no settings and no engines.
    from featurewatch.cli.config.settings import load
    from featurewatch.cli.output.progress import ProgressPrinter
    from featurewatch.cli.runtime.lake import open_lake
    from featurewatch.cli.runtime.lake_reader import default_lake
    from featurewatch.pipeline.errors import ReplayUsageError
    from featurewatch.pipeline.replay.plan import prepare

    settings = load(config)
    root, bundle_limits = lake or default_lake(settings), settings.bundle_limits()
    saved = _saved(root, paths, [cluster, repr(bundle_limits)])
    if saved is not None and (notes_and_clusters := saved.load()) is not None:
        notes, clusters = notes_and_clusters
        _say(notes)
        _show(clusters, as_json=as_json)
        return
    with tempfile.TemporaryDirectory(prefix="featurewatch-replay-") as scratch:
        try:
            plan = prepare(paths, cluster, Path(scratch), bundle_limits)
        except ReplayUsageError as error:
            raise UsageError(str(error)) from error
        _say(plan.notes, plan.problems)
        if not plan.cluster_plans:
            raise Exit(ExitCode.FAILED)
        # A log of millions of records gives small tables.
        with open_lake(root, master, brief=True) as opened:
            # Here, since it needs Spark.
            from featurewatch.pipeline.replay.run import replay as run

            progress = ProgressPrinter(as_json=as_json).progress()
            replayed = run(opened, plan, progress, settings.limits())
    _show(replayed.clusters, as_json=as_json)
    if replayed.problems:
        raise Exit(ExitCode.FAILED)
    if saved is not None:
        saved.save(plan.notes, replayed.clusters)


def _saved(root: str, paths: list[Path], arguments: list[str]) -> "SavedReplay | None":
    """The result of an earlier replay (None if the lake is not a directory of this machine)."""
    if find_spec("deltalake") is None:
        return None  # `open_lake` names what is missing
    from featurewatch.pipeline.lake.root import local_directory
    from featurewatch.pipeline.replayed import SavedReplay

    directory = local_directory(root)
    return None if directory is None else SavedReplay(directory, paths, arguments)


def _show(replays: "list[ClusterReplay]", *, as_json: bool) -> None:
    for cluster_replay in replays:
        if as_json:
            print_json_text(json.dumps(_document(cluster_replay)))
        else:
            print_line(_line(cluster_replay))
        _say(cluster_replay.notes, cluster_replay.problems)


def _say(*lines: list[str]) -> None:
    for line in (line for some in lines for line in some):
        print_error(line)


def _document(replayed: "ClusterReplay") -> dict[str, object]:
    return {
        "cluster": replayed.cluster,
        "from_offset": replayed.first if replayed.end >= 0 else None,
        "to_offset": replayed.end - 1 if replayed.end >= 0 else None,
        "records": replayed.records,
        "messages": replayed.messages,
        "problems": replayed.problems,
    }


def _line(replayed: "ClusterReplay") -> str:
    if replayed.end < 0:
        return f"cluster {replayed.cluster}: nothing could be read"
    offsets = f"offsets {replayed.first} to {replayed.end - 1}"
    counts = f"{replayed.records} records, {replayed.messages} messages"
    return f"cluster {replayed.cluster}: {offsets}, {counts}"
