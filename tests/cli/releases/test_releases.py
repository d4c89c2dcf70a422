"""``featurewatch releases``: what is known, and what is learned from the jars of a real release."""

import json
from pathlib import Path

import pytest

from featurewatch.cli.config.learned_releases import choose_releases_of
from featurewatch.cli.config.settings import load
from featurewatch.cli.errors import UsageError
from featurewatch.kafka.releases import directory as releases_directory
from featurewatch.kafka.releases import package_files
from featurewatch.kafka.releases.directory import VARIABLE
from featurewatch.stack.java.jars import Cache
from tests.cli.commands import featurewatch
from tests.learned_releases import hidden, libs_of, made_up

NEWEST = package_files()[-1]


@pytest.mark.stack
def test_learn_list_and_show(stack_cache: Cache, tmp_path: Path) -> None:
    """One command teaches a release, and every other command knows it then."""
    kafka, release = NEWEST.content["kafka"], NEWEST.release
    libs = libs_of(stack_cache, kafka, tmp_path / "libs")
    unknown = hidden(tmp_path, release, "releases", "show", release)
    assert unknown.returncode == 2
    assert f"Kafka '{release}' is not known, only 3.3 to 4.3: learn it with" in unknown.stderr
    learn = hidden(tmp_path, release, "releases", "learn", "--libs", str(libs), "--json")
    assert learn.returncode == 0, learn.stderr
    document = json.loads(learn.stdout)
    file = tmp_path / "data" / "featurewatch" / "releases" / f"{release}.json"
    assert (document["release"], document["file"]) == (release, str(file))
    assert document["supported"] == NEWEST.content["supported"]
    shown = hidden(tmp_path, release, "releases", "show", release).stdout
    assert f"learned from {libs} (Kafka {kafka})" in shown
    assert "by the rules of Kafka 4.3, not compared with its own classes" in shown
    listed = hidden(tmp_path, release, "releases", "list").stdout.splitlines()
    assert listed[-1].startswith(f"{release}   metadata.version 7-33")
    # The same file under a featurewatch that has the release.
    own = featurewatch(tmp_path, "releases", "list", XDG_DATA_HOME=str(tmp_path / "data"))
    assert "featurewatch's own tables" in own.stdout.splitlines()[-1]
    assert f"{file} is ignored: this version of featurewatch has its own tables" in own.stderr


@pytest.mark.stack
def test_the_outcome_of_a_comparison_is_kept(stack_cache: Cache, tmp_path: Path) -> None:
    """It is in the file, and its exit code says whether decisions differ."""
    libs = libs_of(stack_cache, NEWEST.content["kafka"], tmp_path / "libs")
    arguments = ("releases", "learn", "--libs", str(libs), "--check", "--cases", "60")
    equal = hidden(tmp_path, NEWEST.release, *arguments)
    assert equal.returncode == 0, equal.stderr
    assert "60 cases compared" in equal.stdout
    assert "0 mismatches, by the rules of Kafka 4.3." in equal.stdout
    differing = hidden(tmp_path, "4.2", *arguments, "--json")
    assert differing.returncode == 3, differing.stderr
    check = json.loads(differing.stdout)["check"]
    assert check["mismatches"] > 0
    file = tmp_path / "data" / "featurewatch" / "releases" / f"{NEWEST.release}.json"
    kept = json.loads(file.read_text())["learned"]["check"]
    assert kept["mismatches"] == check["mismatches"]
    shown = hidden(tmp_path, "4.2", "releases", "show", NEWEST.release).stdout
    assert f"60 cases compared, {check['mismatches']} mismatches" in shown


@pytest.mark.stack
def test_a_release_that_is_known_is_not_learned(stack_cache: Cache, tmp_path: Path) -> None:
    """The product's own tables are used."""
    libs = libs_of(stack_cache, "4.3.0", tmp_path / "libs")
    data = tmp_path / "data"
    run = featurewatch(tmp_path, "releases", "learn", "--libs", str(libs), XDG_DATA_HOME=str(data))
    assert run.returncode == 0
    assert "has its own tables of Kafka 4.3, which are used: nothing is learned" in run.stdout
    assert not data.exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "pass --libs DIRECTORY, or --release RELEASE"),
        (("--libs", "a", "--release", "4.5.0"), "pass --libs DIRECTORY, or --release RELEASE"),
        (("--libs", "nowhere"), "nowhere cannot be read (No such file or directory)"),
        (("--libs", "."), ". has no kafka-clients-RELEASE.jar"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, arguments: tuple[str, ...], reason: str) -> None:
    """It says what to pass, and nothing is written."""
    data = tmp_path / "data"
    run = featurewatch(tmp_path, "releases", "learn", *arguments, XDG_DATA_HOME=str(data))
    assert run.returncode in (1, 2)
    assert reason in run.stderr
    assert run.stderr.count("\n") == 1
    assert not data.exists()


def test_the_directory_is_a_setting(tmp_path: Path) -> None:
    """A configuration file names it, also through FEATUREWATCH_CONFIG; the variable goes first."""
    learned = tmp_path / "tables"
    learned.mkdir()
    (learned / "9.1.json").write_text(json.dumps(made_up()))
    config = tmp_path / "featurewatch.yaml"
    config.write_text(f"releases:\n  directory: {learned}\n")

    def last(*arguments: str, **own: str) -> str:
        own = {"XDG_DATA_HOME": str(tmp_path / "data"), **own}
        run = featurewatch(tmp_path, "releases", "list", *arguments, timeout_s=180, **own)
        return run.stdout.splitlines()[-1].split()[0]

    assert last() == NEWEST.release
    assert last("--config", str(config)) == "9.1"
    assert last(FEATUREWATCH_CONFIG=str(config)) == "9.1"
    assert last("--config", str(config), **{VARIABLE: str(tmp_path)}) == NEWEST.release


def test_tables_are_never_of_another_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings that name a directory after tables were read from another one are refused."""
    config = tmp_path / "featurewatch.yaml"
    config.write_text(f"releases:\n  directory: {tmp_path}\n")
    monkeypatch.setenv(VARIABLE, "")
    with pytest.raises(UsageError, match="must be in a regular file"):
        load(config)
    monkeypatch.setattr(releases_directory, "_is_given", False)
    assert choose_releases_of(config) == config
    assert load(config).releases.directory == tmp_path


@pytest.mark.parametrize(
    "text", ["releases", "releases: {directory: 1}", "releases: [", "releases:\n", "\0releases"]
)
def test_a_file_that_is_wrong_is_reported_by_the_settings(tmp_path: Path, text: str) -> None:
    """Looking for the directory raises nothing."""
    config = tmp_path / "featurewatch.yaml"
    config.write_text(text)
    assert choose_releases_of(config) == config
    assert choose_releases_of(tmp_path / "missing") == tmp_path / "missing"
    assert choose_releases_of(None) is None
