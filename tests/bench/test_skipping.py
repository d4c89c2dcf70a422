"""A bench that cannot run here is skipped with its reason, and does not end the others."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from featurewatch.pipeline.errors import SparkMissingError
from featurewatch.stack.errors import JavaError
from tests.bench import __main__ as bench
from tests.bench import page
from tests.bench.requirements import MissingRequirementError


def failing(error: Exception) -> Iterator[dict[str, Any]]:
    """Yields one measure, and fails."""
    yield {"measure": "first"}
    raise error


def taken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> tuple[int, list[Any], str]:
    """Returns the exit code of two benches, what they print, and stderr; the first one fails."""
    benches = {"one": lambda: failing(error), "two": lambda: iter([{"measure": "second"}])}
    monkeypatch.setattr(bench, "BENCHES", benches)
    code = bench.main([])
    output = capsys.readouterr()
    return code, [json.loads(line) for line in output.out.splitlines()], output.err


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (MissingRequirementError("there is no chromium"), "there is no chromium"),
        (SparkMissingError("there is no JDK"), "there is no JDK"),
        (JavaError("there is no Java"), "there is no Java"),
        (ModuleNotFoundError(name="axe"), "the package axe is not installed"),
    ],
)
def test_what_is_missing_skips_one_bench(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    reason: str,
) -> None:
    """The reason is printed as JSON beside the measures, and the run succeeds."""
    code, printed, _ = taken(monkeypatch, capsys, error)
    assert code == 0
    skipped = {"skipped": "one", "reason": reason}
    assert printed == [{"measure": "first"}, skipped, {"measure": "second"}]


@pytest.mark.parametrize(
    "error", [ValueError("odd"), ModuleNotFoundError("odd", name="featurewatch.odd")]
)
def test_a_failure_is_no_skip(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    """It is shown, the others run, and the run fails, as it does without a module of ours."""
    code, printed, shown = taken(monkeypatch, capsys, error)
    assert code == 1
    assert printed == [{"measure": "first"}, {"measure": "second"}]
    assert "odd" in shown


def test_an_unknown_name_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """And the names that there are follow."""
    assert bench.main(["decode", "decoed"]) == 2
    assert "no such bench: decoed; there are decode, " in capsys.readouterr().err


def test_the_page_needs_chromium(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it nothing is measured."""
    monkeypatch.setattr(page, "CHROMIUM", None)
    with pytest.raises(MissingRequirementError, match="chromium"):
        next(page.run(None, None))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", bench.BENCHES)
def test_every_bench_is_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its module is imported, and has the function that is called."""
    used: list[Any] = []

    class Module:
        """A bench's module whose functions are looked up, and not run."""

        def __init__(self, of: str) -> None:
            self._module = __import__(f"tests.bench.{of}", fromlist=["run"])

        def __getattr__(self, function: str) -> Any:
            assert callable(getattr(self._module, function))
            used.append(function)
            return lambda *_: iter(())

    def on_no_bus(measures: Any, partitions: int = 1) -> Iterator[dict[str, Any]]:
        return iter(measures(None, None) or ())

    monkeypatch.setattr(bench, "_module", Module)
    monkeypatch.setattr(bench, "on_a_bus", on_no_bus)
    monkeypatch.setattr(
        bench, "on_a_cluster", lambda measures, partitions: iter(measures(None, None, None))
    )
    bench.BENCHES[name]()
    assert len(used) == 1
