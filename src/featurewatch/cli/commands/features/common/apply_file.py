"""Gives clusters the levels of a file: reads all, validates all, asks once, then changes each.

Nothing is sent to any cluster if one cannot be read, or if one controller refuses the dry run. When
a change is refused or its response is missing, the clusters after it are left alone, and the
outcome of each is said.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from featurewatch.admin.errors import AdminError, OutcomeUnknownError
from featurewatch.admin.features.desired_levels import LevelChange, LevelPlan, plan_levels
from featurewatch.admin.features.metadata import FeatureMetadata
from featurewatch.cli.command_line import Exit
from featurewatch.cli.commands.features.common.clusters import (
    NamedCluster,
    connect,
    learn_cluster,
    sections_of,
)
from featurewatch.cli.commands.features.common.options import FeaturesTarget
from featurewatch.cli.commands.features.common.preview import preview
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.output.confirmation import confirm, must_confirm
from featurewatch.cli.output.rendering import print_json
from featurewatch.cli.output.terminal import print_error, print_line
from featurewatch.common.text import plain
from featurewatch.controller.kraft.releases import intended_feature
from featurewatch.controller.levels import level_name
from featurewatch.pipeline.fleet.desired import DesiredError, DesiredLevels, read_desired
from featurewatch.streams.types import METADATA_VERSION


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """The options of the command; ``only`` are names or ids of clusters."""

    file: Path
    config: Path | None
    only: tuple[str, ...]
    downgrade: bool
    unsafe: bool
    dry_run: bool
    yes: bool


class Outcome(StrEnum):
    """What became of a cluster."""

    UNCHANGED = "unchanged"
    VALIDATED = "validated"
    APPLIED = "applied"
    REFUSED = "refused"
    FAILED = "failed"
    UNKNOWN = "unknown"
    NOT_REQUESTED = "not-requested"


@dataclass(slots=True)
class ClusterWork:
    """One cluster: its environment in the file, its levels as read, the plan, the outcome."""

    cluster: NamedCluster
    environment: str
    metadata: FeatureMetadata
    plan: LevelPlan
    outcome: Outcome = Outcome.UNCHANGED
    message: str | None = None
    applied: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """The fields as JSON has them."""
        return {
            "cluster": self.cluster.id,
            "name": self.cluster.name,
            "environment": self.environment,
            "changes": self.plan.changes,
            "unchanged": {str(name): int(level) for name, level in self.plan.kept},
            "outcome": self.outcome,
            "applied": self.applied,
            "message": self.message,
        }


async def apply_file(target: FeaturesTarget, request: ApplyRequest) -> None:
    """Reads, validates, confirms and changes.

    Raises:
        UsageError: The file or the configuration is wrong, a cluster is in no environment, or a
            level would be lowered without the option for it. Nothing was sent.
        Exit: Something was refused (1), or an outcome is not known (4).
    """
    try:
        desired = read_desired(request.file)
    except DesiredError as error:
        raise UsageError(str(error)) from None
    sections = sections_of(target, request.config, request.only)
    clusters = [await learn_cluster(section) for section in sections]
    if double := [each for each, count in Counter(c.id for c in clusters).items() if count > 1]:
        raise UsageError(f"two entries of the configuration are the cluster {plain(double[0])}")
    work = [await _read(target, request, desired, cluster) for cluster in clusters]
    _check(work, request)
    if not target.as_json:
        _say_plans(work)
    changing = [each for each in work if each.plan.changes]
    await _validate(target, request, changing)
    if changing and not request.dry_run and not _has_problem(changing):
        if must_confirm(request.yes):
            confirm(_previews(changing, request))
        await _change_all(target, request, changing, work)
    _finish(target, request, work)


async def _read(
    target: FeaturesTarget, request: ApplyRequest, desired: DesiredLevels, cluster: NamedCluster
) -> ClusterWork:
    try:
        environment = desired.environment_of(cluster.id, cluster.name)
    except DesiredError as error:
        raise UsageError(f"{request.file}: {error}") from None
    if environment is None:
        raise UsageError(
            f"{request.file} has no levels for the cluster {cluster}: nothing was sent to any "
            "cluster"
        )
    async with connect(target, cluster) as admin:
        metadata = await admin.describe(controller=True)
    plan = plan_levels(metadata, desired.environments[environment].levels)
    return ClusterWork(cluster, environment, metadata, plan)


def _check(work: Sequence[ClusterWork], request: ApplyRequest) -> None:
    """Raises `UsageError` for what cannot, or may not, be requested of some cluster."""
    for each in work:
        for name in each.plan.unsupported:
            close = intended_feature(name)
            hint = f" (did you mean {close}?)" if close else ""
            raise UsageError(
                f"the nodes of {each.cluster} have no feature {plain(name)}{hint}; nothing was "
                "sent to any cluster"
            )
        for change in each.plan.lowered:
            if not request.downgrade:
                raise UsageError(
                    f"{change.feature} of {each.cluster} would be lowered from {change.before} to "
                    f"{change.after}: pass --downgrade to allow that; nothing was sent to any "
                    "cluster"
                )


def _say_plans(work: Sequence[ClusterWork]) -> None:
    for each in work:
        print_line(f"{each.cluster}, {plain(each.environment)}")
        for change in each.plan.changes:
            print_line(f"  {_change(change)}")
        for name, level in each.plan.kept:
            print_line(f"  {name}: {level_name(name, level)}, already there")


def _change(change: LevelChange) -> str:
    feature = change.feature
    return f"{feature}: {level_name(feature, change.before)} -> {level_name(feature, change.after)}"


def _previews(work: Sequence[ClusterWork], request: ApplyRequest) -> Iterator[str]:
    for each in work:
        yield f"{each.cluster}:"
        updates = [item for part in each.plan.requests(unsafe=request.unsafe) for item in part]
        yield from (f"  {line}" for line in preview(each.metadata, updates))


async def _validate(
    target: FeaturesTarget, request: ApplyRequest, changing: Sequence[ClusterWork]
) -> None:
    """Lets each controller judge the requests; one that refuses leaves all clusters alone."""
    for each in changing:
        if METADATA_VERSION not in each.metadata.supported:
            # In ZooKeeper mode the controller ignores the flag, and would change the levels.
            each.message = "no dry run: the controller of a cluster in ZooKeeper mode has none"
            each.outcome = Outcome.NOT_REQUESTED
            continue
        async with connect(target, each.cluster) as admin:
            for updates in each.plan.requests(unsafe=request.unsafe):
                result = await admin.update(updates, dry_run=True)
                if result.refused:
                    each.outcome, each.message = Outcome.REFUSED, result.refused[0].text
                    break
            else:
                each.outcome = Outcome.VALIDATED
    if _has_problem(changing):
        for each in changing:
            if each.outcome is not Outcome.REFUSED:
                each.outcome = Outcome.NOT_REQUESTED


def _has_problem(work: Sequence[ClusterWork]) -> bool:
    return any(each.outcome in (Outcome.REFUSED, Outcome.FAILED, Outcome.UNKNOWN) for each in work)


async def _change_all(
    target: FeaturesTarget,
    request: ApplyRequest,
    changing: Sequence[ClusterWork],
    work: Sequence[ClusterWork],
) -> None:
    """Changes one cluster after another, until one is refused or its outcome is not known."""
    for each in changing:
        each.outcome, each.message = Outcome.NOT_REQUESTED, None
    for each in changing:
        try:
            await _change_one(target, request, each)
        except OutcomeUnknownError as error:
            each.outcome = Outcome.UNKNOWN
            each.message = str(error).removeprefix("whether the change was applied is unknown: ")
        except AdminError as error:
            each.outcome, each.message = Outcome.FAILED, str(error)
        except asyncio.CancelledError:
            if each.outcome is Outcome.UNKNOWN:
                each.message = "interrupted before the response"
            _finish(target, request, work, ends=False)
            raise
        if each.outcome is not Outcome.APPLIED:
            if each.applied:
                done = f"{', '.join(each.applied)} applied; then: "
                each.message = f"{done}{each.message}"
            return


async def _change_one(target: FeaturesTarget, request: ApplyRequest, each: ClusterWork) -> None:
    async with connect(target, each.cluster) as admin:
        desired = {str(change.feature): int(change.after) for change in each.plan.changes}
        if plan_levels(await admin.describe(controller=True), desired).changes != each.plan.changes:
            each.outcome = Outcome.FAILED
            each.message = "its levels changed since they were read; nothing was sent to it"
            return
        for updates in each.plan.requests(unsafe=request.unsafe):
            each.outcome = Outcome.UNKNOWN
            result = await admin.update(updates)
            if result.refused:
                each.outcome, each.message = Outcome.REFUSED, result.refused[0].text
                return
            applied = await admin.describe_applied(updates)
            late = [
                update.feature
                for update in updates
                if applied.finalized.get(update.feature, 0) != update.level
            ]
            if late:
                each.message = f"accepted, but {', '.join(late)} is not there yet"
                return
            each.applied += [update.feature for update in updates]
        each.outcome = Outcome.APPLIED


def _finish(
    target: FeaturesTarget,
    request: ApplyRequest,
    work: Sequence[ClusterWork],
    *,
    ends: bool = True,
) -> None:
    """Prints the outcomes; ends with 4 if one is not known, with 1 if one is refused."""
    for each in work:
        if target.as_json:
            print_json(each.document())
        elif each.outcome in (Outcome.APPLIED, Outcome.UNCHANGED, Outcome.VALIDATED):
            print_line(f"{each.cluster}: {_said(each.outcome)}")
        else:
            reason = f": {plain(each.message)}" if each.message else ""
            print_error(f"{each.cluster}: {_said(each.outcome)}{reason}")
    if not ends:
        return
    outcomes = {each.outcome for each in work}
    if Outcome.UNKNOWN in outcomes:
        unknown = next(each for each in work if each.outcome is Outcome.UNKNOWN)
        print_error(
            "see what is finalized now: featurewatch features describe "
            f"{unknown.cluster.address_option}"
        )
        raise Exit(ExitCode.UNKNOWN)
    if outcomes & {Outcome.REFUSED, Outcome.FAILED}:
        raise Exit(ExitCode.FAILED)
    if request.dry_run and Outcome.NOT_REQUESTED in outcomes:
        raise Exit(ExitCode.UNKNOWN)


_SAID = {
    Outcome.UNCHANGED: "nothing to change",
    Outcome.VALIDATED: "the controller would accept it",
    Outcome.APPLIED: "applied",
    Outcome.REFUSED: "refused",
    Outcome.FAILED: "failed",
    Outcome.UNKNOWN: "requested, and the outcome is not known",
    Outcome.NOT_REQUESTED: "not requested",
}


def _said(outcome: Outcome) -> str:
    return _SAID[outcome]
