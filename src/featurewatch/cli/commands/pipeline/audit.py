"""``featurewatch pipeline audit``: the live outputs against what the lake recomputes."""

from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import orjson

from featurewatch.cli.command_line import Exit, Option, command
from featurewatch.cli.config.lake import Master, finite
from featurewatch.cli.config.options import AsJson, ConfigFile, LakeRoot, WorkerOperations
from featurewatch.cli.errors import ExitCode
from featurewatch.cli.output.terminal import print_error, print_json_text, print_line

if TYPE_CHECKING:
    from featurewatch.monitor.readiness.state_timers import Limits
    from featurewatch.pipeline.audit.report import AuditReport, OutputDifference, TableCounts
    from featurewatch.pipeline.audit.saved import SavedReport


@command()
def audit(
    config: ConfigFile = None,
    lake: LakeRoot = "",
    master: Master = "local[*]",
    late_s: Annotated[
        float,
        Option(
            "--late-s",
            metavar="SECONDS",
            min=0,
            max=31_536_000,
            check=finite,
            help="Longest time from a cause to its output; later ones are listed as late.",
        ),
    ] = 10.0,
    limit: Annotated[
        int,
        Option(
            "--limit",
            metavar="COUNT",
            min=0,
            max=1_000_000,
            help="Number of differences to show one by one.",
        ),
    ] = 20,
    save: Annotated[
        bool, Option("--save", help="Write all differences to the table gold/audit.")
    ] = False,
    follow: Annotated[
        bool, Option("--follow", help="Repeat until Ctrl-C, one line per check.")
    ] = False,
    every: Annotated[
        float,
        Option(
            "--every",
            metavar="SECONDS",
            min=1,
            max=86_400,
            check=finite,
            help="Seconds between checks.",
        ),
    ] = 10.0,
    operations: WorkerOperations = False,
    as_json: AsJson = False,
) -> None:
    """Compare changes, alerts, epochs and operations on the topics with what the lake recomputes.

    Exits with 3 if any output is missing, extra or different, and with 4 if that is unknown.
    """
    # Here, so that help needs no settings and no engines.
    from featurewatch.cli.config.settings import load
    from featurewatch.cli.output.progress import ProgressPrinter
    from featurewatch.cli.runtime.lake import open_lake, stop_at_signal
    from featurewatch.cli.runtime.lake_reader import default_lake

    settings = load(config)
    if operations:
        settings = settings.with_operations()
    root = lake or default_lake(settings)
    saved = None if save or follow else _saved(root, late_s, limit, settings.limits())
    if saved is not None and (report := saved.load()) is not None:
        _finish(report, as_json=as_json)
        return
    with open_lake(root, master) as opened:
        # Here, since it needs Spark.
        from featurewatch.pipeline.audit.audit import audit as audit_lake
        from featurewatch.pipeline.audit.audit import follow as follow_lake

        if not follow:
            report = audit_lake(
                *(opened, late_s, limit),
                save=save,
                limits=settings.limits(),
                progress=ProgressPrinter(as_json=as_json).progress(),
            )
            if saved is not None:
                saved.save(report)
            _finish(report, as_json=as_json)
            return
        code, differed = ExitCode.UNKNOWN, False
        for report in follow_lake(opened, every, stop_at_signal(), late_s, settings.limits()):
            differed = differed or report.has_differences
            code = _code(report, differed)
            _show_check(report, as_json=as_json)
    if code is not ExitCode.GOOD:
        raise Exit(code)


def _saved(root: str, late_s: float, limit: int, limits: "Limits") -> "SavedReport | None":
    """The report of an earlier audit (None if the lake is not a directory of this machine)."""
    if find_spec("deltalake") is None:
        return None  # `open_lake` names what is missing
    from featurewatch.pipeline.audit.saved import SavedReport
    from featurewatch.pipeline.lake.root import local_directory

    directory = local_directory(root)
    return None if directory is None else SavedReport(directory, late_s, limit, limits)


def _finish(report: "AuditReport", *, as_json: bool) -> None:
    _show(report, as_json=as_json)
    code = _code(report, report.has_differences)
    if code is not ExitCode.GOOD:
        raise Exit(code)


def _code(report: "AuditReport", differed: bool) -> ExitCode:
    if differed:
        return ExitCode.NO
    return ExitCode.GOOD if report.is_conclusive else ExitCode.UNKNOWN


def _show(report: "AuditReport", *, as_json: bool) -> None:
    if as_json:
        for counts in report.counts:
            _print({"kind": "table", **counts._asdict()})
        for difference in report.differences:
            _print({"kind": "difference", **difference._asdict()})
        _print({"kind": "audit", **_summary(report)})
        return
    for counts in report.counts:
        print_line(f"{counts.table}: {_in_words(counts)}")
    for difference in report.differences:
        print_line(_line(difference))
    hidden = report.count("different", "missing", "extra") - len(report.differences)
    if hidden > 0:
        print_line(f"and {hidden} more")
    if report.replayed:
        print_line(f"left out: {report.replayed} replayed (nothing was published live for these)")
    if report.searches_ended:
        print_line(
            f"search ended: {report.searches_ended} with too many orders of messages to try, so "
            "differences of these may follow from the order (docs/how-to/audit.md)"
        )
    for reason in report.unknown_reasons:
        print_error(reason)


def _show_check(report: "AuditReport", *, as_json: bool) -> None:
    """One line for each of the repeated checks."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    if as_json:
        _print({"kind": "check", "at": now, **_summary(report)})
        return
    verdicts = _joined({name: report.count(name) for name in _verdicts(report)})
    why = f" ({'; '.join(report.unknown_reasons)})" if report.unknown_reasons else ""
    print_line(f"{now} folded to round {report.folded_round}: {verdicts}{why}")


def _verdicts(report: "AuditReport") -> list[str]:
    return [*report.counts[0].verdicts] if report.counts else []


def _summary(report: "AuditReport") -> dict[str, Any]:
    return {
        "folded_round": report.folded_round,
        "verdicts": {name: report.count(name) for name in _verdicts(report)},
        "late": sum(table.late for table in report.counts),
        "duplicates": sum(table.duplicates for table in report.counts),
        "replayed": report.replayed,
        "searches_ended": report.searches_ended,
        "has_differences": report.has_differences,
        "is_conclusive": report.is_conclusive,
        "unknown_reasons": report.unknown_reasons,
    }


def _in_words(counts: "TableCounts") -> str:
    text = _joined(counts.verdicts)
    if counts.late:
        text += f", {counts.late} late (by up to {counts.late_ms / 1000:.1f} s)"
    return f"{text}, {counts.duplicates} published more than once" if counts.duplicates else text


def _joined(verdicts: Any) -> str:
    return ", ".join(f"{number} {name}" for name, number in verdicts.items() if number) or "nothing"


def _line(difference: "OutputDifference") -> str:
    output = f"{difference.verdict}: {difference.table} {difference.id}"
    if difference.fields:
        return f"{output}: in {', '.join(difference.fields)}"
    return output


def _print(document: dict[str, Any]) -> None:
    print_json_text(orjson.dumps(document).decode())
