"""Finalizes the levels of a plan: checks, a dry run, the question, the request, its outcome.

Nothing is sent unless everything held just before, and what was sent and not answered is looked for
in the metadata log, and else called unknown.
"""

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn

from rich.text import Text

from featurewatch.admin.errors import OutcomeUnknownError, UnreachableError
from featurewatch.admin.features.client import FeatureAdmin
from featurewatch.admin.features.updates import FeatureUpdate, UpdateResult
from featurewatch.cli.command_line import Exit
from featurewatch.cli.commands.upgrade.options import UpgradeSource
from featurewatch.cli.commands.upgrade.reading import ReadState, read_plan, read_state
from featurewatch.cli.commands.upgrade.rendering import CODES, check_documents, check_lines
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.kafka_tools.target import AdminTarget, Tool
from featurewatch.cli.output import rendering
from featurewatch.cli.output.confirmation import confirm
from featurewatch.common.text import plain
from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.levels import level_name
from featurewatch.monitor.upgrade import (
    PlanError,
    Precondition,
    ReadPlan,
    finalize_preconditions,
    missing_levels,
)
from featurewatch.monitor.upgrade.plan import Levels, accepted, verdict_of
from featurewatch.streams.types import FeatureLevel, FeatureName

ACCEPTED: Final = frozenset({"plan", "ghosts", "brokers", "soak", "ranges", "alerts"})
"""The checks that a person may overrule; the others would be refused, or are not known."""

_TOOL: Final = Tool("featurewatch upgrade status", "what is finalized now", to_stderr=True)
_LOG_S: Final = 30.0
_POLL_S: Final = 1.0
_OFF: Final = FeatureLevel(0)


@dataclass(slots=True)
class _Report:
    """What is printed at the end.

    ``outcome`` is one of *finalized*, *accepted* (a dry run), *not-sent*, *refused*, *unknown*.
    """

    source: UpgradeSource
    read: ReadPlan
    before: Levels
    checks: tuple[Precondition, ...] = ()
    outcome: str = "not-sent"
    reasons: list[str] = field(default_factory=list)
    levels: dict[FeatureName, str] = field(default_factory=dict)
    epoch: int = -1

    def end(self, outcome: str, code: ExitCode, *reasons: str) -> NoReturn:
        """Prints the report and ends the command."""
        self.outcome = outcome
        self.reasons += reasons
        if self.source.as_json:
            rendering.print_json(self._document())
        else:
            console = rendering.console()
            for line in self._lines():
                console.print(line, soft_wrap=True)
        raise Exit(code)

    def _document(self) -> dict[str, Any]:
        return {
            "cluster": self.read.plan.cluster,
            "target": self.read.plan.target,
            "outcome": self.outcome,
            "reasons": self.reasons,
            "checks": check_documents(self.checks),
            "levels": [
                {
                    "feature": name,
                    "before": self.before.get(name, _OFF),
                    "requested": level,
                    "state": self.levels.get(name, "not-sent"),
                }
                for name, level in self.read.plan.after.items()
            ],
            "epoch": self.epoch,
        }

    def _lines(self) -> Iterable[Text]:
        yield from check_lines(self.checks)
        for text in self.reasons:
            yield Text(plain(text))
        target = self.read.plan.target
        words = {
            "finalized": (f"The levels of Kafka {target} are finalized.", "bold green"),
            "accepted": ("The controller would accept it. Nothing was changed.", "green"),
            "not-sent": ("Nothing was sent, nothing is changed.", "bold yellow"),
            "refused": ("The controller refused: nothing is changed.", "bold red"),
            "partly": ("Only some levels are finalized, see above.", "bold red"),
            "unknown": ("What became of the request is not known, see above.", "bold yellow"),
        }
        for name, state in self.levels.items():
            before = level_name(name, self.before.get(name, _OFF))
            after = level_name(name, self.read.plan.after[name])
            yield Text(f"  {plain(name)}: {before} → {after}  {state}")
        text, style = words[self.outcome]
        yield Text(text, style=style)


def run(
    source: UpgradeSource, plan: Path, accept: frozenset[str], *, dry_run: bool, yes: bool
) -> None:
    """Finalizes the levels of the plan in a file.

    Raises:
        UsageError: The plan, an option or a setting is wrong; nothing was sent.
        Exit: With the outcome.
    """
    if unknown := sorted(accept - ACCEPTED):
        raise UsageError(f"--accept {unknown[0]}: it takes {', '.join(sorted(ACCEPTED))}")
    if not (source.servers or source.controllers):
        raise UsageError("pass --bootstrap-server or --bootstrap-controller, to send the change to")
    if not (dry_run or yes or sys.stdin.isatty()):
        raise UsageError("there is nobody to ask: pass --yes, or --dry-run to check only")
    read = read_plan(plan)
    first = read_state(source)
    report = _Report(source, read, dict(first.state.image.features.levels.items()))
    missing = _check(report, first, accept)
    refused = _request(report, missing, dry_run=True)
    if texts := _refusals(refused):
        report.levels = dict.fromkeys(missing, "refused")
        report.end("refused", ExitCode.NO, *texts)
    if dry_run:
        report.levels = dict.fromkeys(missing, "accepted")
        report.end("accepted", ExitCode.GOOD)
    if not yes:
        confirm(_preview(report, missing), "Finalize these levels? [y/N] ")
    # It may have taken minutes to answer: everything is checked again, and then sent at once.
    again = read_state(source)
    epochs = [seen.state.image.features.epoch for seen in (first, again)]
    if epochs[0] != epochs[1]:
        report.end(
            "not-sent",
            ExitCode.NO,
            f"the levels changed meanwhile (epoch {epochs[0]} → {epochs[1]}): look with "
            "`featurewatch upgrade status`, and run this again",
        )
    missing = _check(report, again, accept)
    _send(report, missing)


def _check(
    report: _Report, seen: ReadState, accept: frozenset[str]
) -> dict[FeatureName, FeatureLevel]:
    """The levels to request; ends the command if there are none, or something is in the way."""
    now_ms = int(time.time() * 1000)
    try:
        checks = finalize_preconditions(report.read, seen.state, seen.limits, now_ms)
    except PlanError as error:
        raise UsageError(str(error)) from None
    missing = missing_levels(report.read.plan, seen.state)
    report.epoch = seen.state.image.features.epoch
    log = next(check for check in checks if check.name == "log")
    if not missing and log.verdict is Verdict.YES:
        report.levels = dict.fromkeys(report.read.plan.after, "finalized")
        report.end("finalized", ExitCode.GOOD, f"nothing to do: epoch {report.epoch} has them")
    report.checks = accepted(report.source.with_addresses(checks), accept)
    verdict = verdict_of(report.checks)
    if verdict is not Verdict.YES:
        report.end("not-sent", CODES[verdict])
    return missing


def _preview(report: _Report, missing: Mapping[FeatureName, FeatureLevel]) -> Iterable[str]:
    for check in report.checks:
        yield f"{check.name}: {check.text}"
    step = report.read.plan.step("finalize")
    for name, level in missing.items():
        before = report.before.get(name, _OFF)
        yield f"{name}: {level_name(name, before)} -> {level_name(name, level)}"
    if step is not None:
        yield from (text for text in step.changes if text.startswith("beware"))
        if step.point_of_no_return:
            yield f"POINT OF NO RETURN. {step.way_back}"


def _updates(levels: Mapping[FeatureName, FeatureLevel]) -> list[FeatureUpdate]:
    return [FeatureUpdate(name, level) for name, level in levels.items()]


def _request(
    report: _Report, levels: Mapping[FeatureName, FeatureLevel], *, dry_run: bool
) -> UpdateResult | OutcomeUnknownError:
    """The controller's result, or why it is not known; ends the command if it was not reached."""
    source = report.source
    found: list[UpdateResult | OutcomeUnknownError | UnreachableError] = []

    async def send(target: AdminTarget) -> None:
        try:
            async with target.connect(FeatureAdmin, changes=not dry_run) as admin:
                found.append(await admin.update(_updates(levels), dry_run=dry_run))
        except (OutcomeUnknownError, UnreachableError) as error:
            found.append(error)

    login = source.command_config
    if not source.servers:
        login = source.controllers_config or login
    controllers = "" if source.servers else source.controllers
    target = AdminTarget(_TOOL, source.servers, controllers, login, as_json=False)
    target.run(send)
    result = found[0]
    if isinstance(result, UnreachableError):
        report.end("not-sent", ExitCode.UNKNOWN, f"no controller took the request: {result}")
    return result


def _refusals(result: UpdateResult | OutcomeUnknownError) -> list[str]:
    if isinstance(result, OutcomeUnknownError):
        return []
    return list(dict.fromkeys(item.text or str(item.error) for item in result.refused))


def _send(report: _Report, missing: Mapping[FeatureName, FeatureLevel]) -> NoReturn:
    result = _request(report, missing, dry_run=False)
    refusals = _refusals(result)
    if isinstance(result, OutcomeUnknownError):
        report.reasons.append(f"the request was sent and not answered: {result}")
        wanted = dict(missing)
    else:
        accepted_ones = {item.feature for item in result.results if item.accepted}
        wanted = {name: level for name, level in missing.items() if name in accepted_ones}
    report.reasons += refusals
    levels = finalized_in_log(
        lambda: read_state(report.source), wanted, _LOG_S, time.monotonic, time.sleep
    )
    report.epoch = levels.epoch
    for name in missing:
        if name in levels.finalized:
            report.levels[name] = "finalized"
        else:
            report.levels[name] = "unknown" if name in wanted else "refused"
    states = set(report.levels.values())
    if states == {"finalized"}:
        report.end("finalized", ExitCode.GOOD, f"in the metadata log at epoch {levels.epoch}")
    if "unknown" in states:
        names = ", ".join(name for name, state in report.levels.items() if state == "unknown")
        report.end(
            "unknown",
            ExitCode.UNKNOWN,
            f"requested, and not in the metadata log after {_LOG_S:.0f} s: {names}",
        )
    report.end("partly" if "finalized" in states else "refused", ExitCode.NO)


@dataclass(frozen=True, slots=True)
class LogLevels:
    """Which of some levels the log has, and the epoch of its levels."""

    finalized: frozenset[FeatureName]
    epoch: int


def finalized_in_log(
    read: Callable[[], ReadState],
    wanted: Mapping[FeatureName, FeatureLevel],
    timeout_s: float,
    monotonic: Callable[[], float],
    pause: Callable[[float], None],
) -> LogLevels:
    """Which levels the metadata log has, read until it has all of them or the time is up.

    A cluster that cannot be read meanwhile is read again.
    """
    deadline, found = monotonic() + timeout_s, LogLevels(frozenset(), -1)
    while wanted:
        try:
            features = read().state.image.features
        except Exit:
            pass
        else:
            there = {n for n, level in wanted.items() if features.levels.get(n, _OFF) >= level}
            found = LogLevels(frozenset(there), features.epoch)
        if len(found.finalized) == len(wanted) or monotonic() >= deadline:
            break
        pause(_POLL_S)
    return found
