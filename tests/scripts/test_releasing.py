"""A release: what must hold, archives, man pages and completion; nightly, whole ones."""

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import click
import jsonschema_rs
import pytest
import yaml

from featurewatch.cli.app import SUMMARIES, app
from scripts.generators import version as version_places
from scripts.releasing.__main__ import release
from scripts.releasing.archives import Member, below, pack, unpack
from scripts.releasing.build import SUMS, sums
from scripts.releasing.checks import ReleaseError, notes_of, version_of
from scripts.releasing.shells import man_pages, shell_files
from tests.paths import ROOT

EPOCH_S = 1_700_000_000
CHANGELOG = "# Changes\n\n## 0.2.0\n\nNew.\n\n## 0.1.0 (2026-01-01)\n\nFirst.\n"


def test_a_release_has_an_entry_in_the_change_log() -> None:
    """Its own, the newest one, and not an empty one."""
    assert notes_of(CHANGELOG, "0.2.0") == "New.\n"
    for text, version, message in (
        (CHANGELOG, "0.3.0", "has no entry for 0.3.0: write '## 0.3.0'"),
        (CHANGELOG, "0.1.0", "has 0.2.0 before 0.1.0"),
        ("# Changes\n\n## 0.2.0\n\n## 0.1.0\n\nFirst.\n", "0.2.0", "is empty"),
    ):
        with pytest.raises(ReleaseError, match=re.escape(message)):
            notes_of(text, version)
    project = (ROOT / "pyproject.toml").read_text()
    assert notes_of((ROOT / "CHANGELOG.md").read_text(), version_of(project))


def test_the_version_is_in_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one in pyproject.toml is written everywhere, and no old one is left."""
    old = version_of((ROOT / "pyproject.toml").read_text())
    new = "7.8.9rc1"
    for name in ("pyproject.toml", *version_places._PLACES):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text((ROOT / name).read_text())
    project = tmp_path / "pyproject.toml"
    project.write_text(project.read_text().replace(f'version = "{old}"', f'version = "{new}"'))
    monkeypatch.setattr(version_places, "ROOT", tmp_path)
    for _, text in version_places.versions():
        assert new in text
        assert not re.search(rf"featurewatch[\w-]*[:-]{re.escape(old)}\b", text)
    chart = dict(version_places.versions())[tmp_path / "deploy/helm/featurewatch/Chart.yaml"]
    assert yaml.safe_load(chart)["appVersion"] == yaml.safe_load(chart)["version"] == new


def test_an_archive_has_nothing_of_who_packed_it() -> None:
    """Neither times nor owners nor rights nor an order."""
    members = {"b/program": Member(b"#!", is_program=True), "a": Member(b"text")}
    packed = pack(members, EPOCH_S)
    assert packed == pack(dict(reversed(members.items())), EPOCH_S)
    assert unpack(packed) == members
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        infos = archive.getmembers()
    assert [info.name for info in infos] == ["a", "b/program"]
    assert {(info.mtime, info.uid, info.gid, info.uname) for info in infos} == {(EPOCH_S, 0, 0, "")}
    assert [info.mode for info in infos] == [0o644, 0o755]
    assert below(members, ["b"], root="x/") == {"x/b/program": members["b/program"]}


def test_hashes_are_those_of_sha256sum(tmp_path: Path) -> None:
    """Which checks them."""
    files = {"b": b"2", "a": b"1"}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / SUMS).write_text(sums(files))
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", SUMS], cwd=tmp_path, check=True)
    (tmp_path / "a").write_bytes(b"3")
    done = subprocess.run(["sha256sum", "-c", SUMS], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 1


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """The man pages."""
    return man_pages("1.2.3", "2026-01-02")


def test_each_command_has_a_man_page(pages: dict[str, str]) -> None:
    """With all options, also those of its sub-commands."""
    assert pages.keys() == {"featurewatch", *(f"featurewatch-{name}" for name in SUMMARIES)}
    assert '"2026-01-02" "featurewatch 1.2.3"' in pages["featurewatch"]
    context = click.Context(app, info_name="featurewatch", **app.context_settings)
    assert "\n\\fB\\-h, \\-\\-help\\fR\n" in pages["featurewatch-features"]
    for name in SUMMARIES:
        command = app.get_command(context, name)
        assert command is not None
        page = pages[f"featurewatch-{name}"].replace("\\-", "-")
        for option in options_of(command, click.Context(command, info_name=name, parent=context)):
            assert option in page, (name, option)


def options_of(command: click.Command, context: click.Context) -> set[str]:
    """The options of a command, and of those below it."""
    found = {name for param in command.params for name in param.opts if name.startswith("--")}
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            found |= options_of(inner, click.Context(inner, info_name=name, parent=context))
    return found


def test_groff_has_nothing_to_remark(pages: dict[str, str]) -> None:
    """And what it prints has the words of the help."""
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not here")
    command = [groff, "-man", "-Tutf8", "-ww"]
    text = "".join(pages.values())
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    printed = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", done.stdout)
    assert "featurewatch-readiness" in printed
    assert "--log-format" in printed


def test_bash_completes_commands(tmp_path: Path) -> None:
    """By the file that is shipped."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not here")
    completion = tmp_path / "completion"
    files = shell_files("1.2.3", EPOCH_S)
    completion.write_bytes(files["share/bash-completion/completions/featurewatch"].content)
    program = tmp_path / "featurewatch"
    program.write_text('#!/bin/sh\nexec "$PYTHON" -m featurewatch "$@"\n')
    program.chmod(0o755)
    script = (
        'source "$1"; COMP_WORDS=(featurewatch sta); COMP_CWORD=1; '
        '_featurewatch_completion featurewatch 2>/dev/null; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHON": sys.executable,
    }
    done = subprocess.run(
        [bash, "-c", script, "bash", completion],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["state", "stack"], done.stderr


@pytest.mark.parametrize(
    ("shell", "path"),
    [
        ("zsh", "share/zsh/site-functions/_featurewatch"),
        ("fish", "share/fish/vendor_completions.d/featurewatch.fish"),
    ],
)
def test_other_shells_parse_their_file(shell: str, path: str, tmp_path: Path) -> None:
    """Where they are installed."""
    content = shell_files("1.2.3", EPOCH_S)[path].content
    assert b"_FEATUREWATCH_COMPLETE" in content
    if (program := shutil.which(shell)) is None:
        pytest.skip(f"{shell} is not here")
    (tmp_path / "file").write_bytes(content)
    subprocess.run([program, "-n", tmp_path / "file"], check=True)


def git(directory: Path, *arguments: str | Path) -> None:
    """Runs git as somebody."""
    who = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]
    subprocess.run(["git", "-C", directory, *who, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit of two files."""
    made = tmp_path / "repository"
    made.mkdir()
    (made / "pyproject.toml").write_text('[project]\nversion = "0.2.0"\n')
    (made / "CHANGELOG.md").write_text("# Changes\n\n## 0.1.0\n\nFirst.\n")
    git(made, "init", "--quiet")
    git(made, "add", ".")
    git(made, "commit", "--quiet", "-m", "all")
    return made


def test_a_release_is_refused_for_a_reason(repository: Path, tmp_path: Path) -> None:
    """Before anything is built."""
    out = tmp_path / "out"
    with pytest.raises(ReleaseError, match=r"the tag v0\.1\.0 is not v0\.2\.0"):
        release(repository, out, "v0.1.0")
    with pytest.raises(ReleaseError, match=r"has no entry for 0\.2\.0"):
        release(repository, out)
    (repository / "other").write_text("")
    with pytest.raises(ReleaseError, match=r"commit or remove what is changed: \?\? other"):
        release(repository, out)
    (repository / "other").unlink()
    out.mkdir()
    (out / "file").write_text("")
    with pytest.raises(ReleaseError, match="has files already"):
        release(repository, out)


@pytest.mark.nightly
def test_two_clones_give_the_same_release(tmp_path: Path) -> None:
    """Each file byte by byte, with other rights, in another directory, at another time."""
    if not (ROOT / ".git").exists():
        pytest.skip("there is no git repository")
    built = []
    for name, mask in (("one", 0o022), ("other", 0o077)):
        clone = tmp_path / name
        git(tmp_path, "clone", "--quiet", "--no-local", "--depth=1", f"file://{ROOT}", clone)
        before = os.umask(mask)
        try:
            release(clone, clone / "dist")
        finally:
            os.umask(before)
        built.append({file.name: file.read_bytes() for file in (clone / "dist").iterdir()})
    assert built[0] == built[1]
    check_release(built[0])


def check_release(files: dict[str, bytes]) -> None:
    """Asserts what is in the files of a release."""
    version = version_of((ROOT / "pyproject.toml").read_text())
    root = f"featurewatch-{version}"
    assert files.keys() == {
        SUMS,
        f"{root}.tar.gz",
        f"{root}-py3-none-any.whl",
        f"{root}-image.tar.gz",
        f"featurewatch-chart-{version}.tgz",
        f"{root}-shell.tar.gz",
        f"{root}.cdx.json",
        f"{root}-notes.md",
    }
    for line in files[SUMS].decode().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256(files[name]).hexdigest() == digest
    with zipfile.ZipFile(io.BytesIO(files[f"{root}-py3-none-any.whl"])) as wheel:
        assert "featurewatch/cli/main.py" in wheel.namelist()
    bom = json.loads(files[f"{root}.cdx.json"])
    assert bom["bomFormat"] == "CycloneDX"
    assert (bom["metadata"]["component"]["name"], bom["metadata"]["component"]["version"]) == (
        "featurewatch",
        version,
    )
    lock = (ROOT / "deploy/image/requirements.txt").read_text()
    locked = set(re.findall(r"^([\w.-]+)==([\w.]+) ", lock, re.MULTILINE))
    assert {(each["name"], each["version"]) for each in bom["components"]} == locked
    chart = unpack(files[f"featurewatch-chart-{version}.tgz"])
    assert yaml.safe_load(chart["featurewatch/Chart.yaml"].content)["version"] == version
    image = unpack(files[f"{root}-image.tar.gz"])
    project = image[f"{root}-image/pyproject.toml"].content.decode()
    assert tomllib.loads(project)["project"]["version"] == version
    assert f"{root}-image/deploy/image/Containerfile" in image


def test_the_workflow_publishes_what_make_release_builds() -> None:
    """By the tag, with no stored secret, and rights only in the job that publishes."""
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    package = find_spec("check_jsonschema")
    assert package is not None
    assert package.origin is not None
    file = Path(package.origin).parent / "builtin_schemas/vendor/github-workflows.json"
    as_json = {("on" if key is True else key): value for key, value in workflow.items()}
    jsonschema_rs.validate(json.loads(file.read_text()), as_json)
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML reads `on` as true
    assert workflow["permissions"] == {}
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]
    assert build["permissions"] == {"contents": "read"}
    assert publish["permissions"]["id-token"] == "write"
    assert (publish["needs"], publish["environment"]) == ("build", "release")
    runs = [step["run"] for job in (build, publish) for step in job["steps"] if "run" in step]
    assert any(run.startswith("make release") and 'TAG="$TAG"' in run for run in runs)
    text = (ROOT / ".github/workflows/release.yml").read_text()
    assert "secrets." not in text
    # What comes from the event is passed by the environment, not into a shell's text.
    assert not any("${{" in run for run in runs)
