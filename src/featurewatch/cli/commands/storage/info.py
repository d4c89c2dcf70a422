"""The format of a log directory, its current levels, and the releases that start on it."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from rich.text import Text

from featurewatch.cli.command_line import Exit
from featurewatch.cli.config.settings import ClusterSection
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.output import rendering
from featurewatch.cli.output.terminal import print_error
from featurewatch.cli.runtime.cluster_image import (
    ClusterNotReadError,
    NothingCommittedError,
    read_image,
)
from featurewatch.common.id_runs import format_ids
from featurewatch.controller.kraft.kip_778 import first_record
from featurewatch.controller.kraft.requests import FeatureLevelRecord
from featurewatch.controller.levels import level_name
from featurewatch.controller.software import notes_of_learned, start_refusals
from featurewatch.streams.kraft.directory.commit_rule import SETTLE_MS
from featurewatch.streams.kraft.directory.formatted import FormattedDirectory, read_formatted
from featurewatch.streams.kraft.errors import DamagedDirectoryError, NotALogDirectoryError
from featurewatch.streams.types import FeatureLevel, FeatureName
from featurewatch.tables.image.cluster import ClusterImage

Levels = Mapping[FeatureName, FeatureLevel]
_FILES_S: Final = SETTLE_MS / 1000 + 2
"""Files are unreadable if nothing was read after this time; a record counts only after a while."""


def print_info(directory: Path, *, as_json: bool) -> None:
    """Prints what a directory was formatted with, as one JSON document or for people.

    Raises:
        UsageError: It is not a log directory.
        Exit: Its files cannot be read.
    """
    try:
        info = _read(directory)
    except NotALogDirectoryError as error:
        raise UsageError(rendering.plain(error)) from None
    except (DamagedDirectoryError, ClusterNotReadError) as error:
        print_error(str(error))
        raise Exit(ExitCode.FAILED) from None
    if as_json:
        rendering.print_json(info.document())
        return
    console = rendering.console()
    for line in info.lines():
        console.print(line, soft_wrap=True)


@dataclass(frozen=True, slots=True)
class _Info:
    """A log directory; ``committed`` is the image of the committed records, ``end`` that of all."""

    formatted: FormattedDirectory
    committed: ClusterImage | None
    end: ClusterImage | None

    @property
    def levels(self) -> Levels:
        """The levels that a node which starts on it will read."""
        if self.end is not None:
            return dict(self.end.features.levels)
        kraft = self.formatted.kraft_version
        quorum = {FeatureName("kraft.version"): kraft} if kraft else {}
        return {**(self.formatted.levels or {}), **quorum}

    @property
    def uncommitted(self) -> Levels | None:
        """The levels at the end of the log, where it is not known that they are committed."""
        if self.end is None:
            return None
        committed = self.committed.features.levels if self.committed is not None else {}
        changed = dict(committed) != dict(self.end.features.levels)
        return dict(self.end.features.levels) if changed else None

    @property
    def _first(self) -> FeatureLevelRecord | None:
        """The first level record that a controller of KIP-778 as written would write.

        That is the level of ``meta.properties``, or level 1 in the directory of a preview cluster,
        where neither that file nor a snapshot has a level. Released Kafka writes the levels of its
        snapshot, and none where there is no snapshot.
        """
        meta = self.formatted.meta
        is_preview = bool(meta.version) and self.formatted.levels is None
        if meta.level is None and not is_preview:
            return None
        return first_record(
            dict(self.end.features.levels) if self.end is not None else {}, meta.level
        )

    def document(self) -> dict[str, Any]:
        """Returns one JSON document."""
        formatted, meta, committed = self.formatted, self.formatted.meta, self.committed
        return {
            "directory": str(formatted.directory),
            "meta": {
                "version": meta.version,
                "cluster": meta.cluster,
                "node": meta.node,
                "directory_id": meta.directory_id,
            },
            "formatted": None
            if formatted.levels is None
            else {
                "levels": dict(formatted.levels),
                "kraft_version": formatted.kraft_version or 0,
                "voters": list(formatted.voters),
            },
            "committed": None
            if committed is None
            else {
                "levels": dict(sorted(committed.features.levels.items())),
                "offset": committed.log.provenance.offset,
            },
            "uncommitted": self.uncommitted,
            "releases": start_refusals(self.levels) if self.levels else {},
            "learned": list(self._learned),
        }

    def lines(self) -> list[Text]:
        """Returns the lines for people."""
        formatted, meta = self.formatted, self.formatted.meta
        mode = "KRaft" if meta.version else "ZooKeeper mode"
        node = "no node id" if meta.node is None else f"node {meta.node}"
        own = f", directory id {meta.directory_id}" if meta.directory_id else ""
        cluster = meta.cluster or "not named"
        rows = [
            ("directory", str(formatted.directory)),
            ("belongs to", f"cluster {cluster}, {node}{own} ({mode})"),
            ("formatted", _initial(formatted)),
        ]
        if self.committed is not None:
            at = f"offset {self.committed.log.provenance.offset}"
            rows.append(("now", f"{_levels(self.committed.features.levels)}, at {at}"))
        elif self.end is not None:
            rows.append(("now", "nothing in the metadata log is known to be committed"))
        elif formatted.log is not None:
            rows.append(("now", "there is nothing in the metadata log yet"))
        elif meta.version:
            rows.append(("now", "there is no metadata log yet: the node was never started"))
        if self._first is not None:
            first = _levels({self._first.feature: self._first.level})
            rows.append(("first", f"KIP-778's controller writes {first}, as the log has no level"))
        if self.uncommitted is not None:
            rows.append(("after that", f"{_levels(self.uncommitted)}: perhaps not committed"))
        return [
            Text(f"{name:<12}{rendering.plain(text)}") for name, text in rows
        ] + self._releases()

    @property
    def _learned(self) -> tuple[str, ...]:
        """The origins of the learned tables of the releases."""
        return notes_of_learned(names=start_refusals(self.levels)) if self.levels else ()

    def _releases(self) -> list[Text]:
        """Which releases start on it, and why others do not: the newest of a run speaks for it."""
        if not self.levels:
            return []
        answers = start_refusals(self.levels)
        able = [name for name, reason in answers.items() if reason is None]
        lines = [Text(f"{'starts with':<12}{', '.join(able) or 'no release that is known'}")]
        for refused, run in groupby(answers.items(), key=lambda one: one[1] is not None):
            names = dict(run)
            if refused:
                first, (last, reason) = next(iter(names)), list(names.items())[-1]
                names_text = first if first == last else f"{first} to {last}"
                lines.append(Text(f"{'not with':<12}{names_text}: {reason}", style="yellow"))
        return lines + [Text(f"{'':<12}{rendering.plain(note)}") for note in self._learned]


def _initial(formatted: FormattedDirectory) -> str:
    if formatted.levels is None:
        return "it has no snapshot of a format, so no initial levels"
    voters = f"; voters {format_ids(formatted.voters)}" if formatted.voters else ""
    kraft = f", kraft.version {formatted.kraft_version}" if formatted.kraft_version else ""
    return f"{_levels(formatted.levels)}{kraft}{voters}"


def _levels(levels: Levels) -> str:
    texts = (f"{name} {level_name(name, level)}" for name, level in sorted(levels.items()))
    return ", ".join(texts) or "no levels"


def _read(directory: Path) -> _Info:
    formatted = read_formatted(directory.expanduser())
    if formatted.log is None or formatted.meta.cluster is None:
        return _Info(formatted, None, None)
    cluster = ClusterSection(cluster_id=formatted.meta.cluster, log_directory=formatted.log)
    return _Info(formatted, _image(cluster, None), _image(cluster, 0))


def _image(cluster: ClusterSection, settle_ms: int | None) -> ClusterImage | None:
    """The image of the log; None where nothing in it is committed."""
    try:
        image = read_image(cluster, _FILES_S, settle_ms=settle_ms)
    except NothingCommittedError:
        return None
    if image.sources.unreadable:
        kind, first = next(iter(image.sources.unreadable.items()))
        raise ClusterNotReadError(
            f"{cluster.log_directory}: {kind} at {first.location}: {first.reason}"
        )
    return image
