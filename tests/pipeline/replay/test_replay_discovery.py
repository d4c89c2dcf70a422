"""The discovery of logs below paths: links, archives, texts, and cluster ids."""

import io
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from featurewatch.pipeline.errors import ReplayUsageError
from featurewatch.pipeline.replay.archives import unpack
from featurewatch.pipeline.replay.plan import ReplayPlan, prepare
from tests.pipeline.replay.logs import CLUSTER, Log, level, noop
from tests.streams.kraft.dump_text import PRINTED_LOG

LOG = "__cluster_metadata-0"
SEGMENT = f"{0:020}.log"


def prepared(scratch: Path, *paths: Path | str, cluster: str = "") -> ReplayPlan:
    """The plan for some paths, which may be relative."""
    return prepare([Path(path) for path in paths], cluster, scratch / "scratch")


def clusters(plan: ReplayPlan) -> list[str]:
    """The clusters of a plan."""
    return [cluster_plan.cluster for cluster_plan in plan.cluster_plans]


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A node's directory with a log."""
    Log().add(level(19)).add(noop()).write(tmp_path / "node")
    return tmp_path / "node"


@pytest.mark.parametrize(
    "line",
    [
        r"cluster.id=MkU3OEVBNTcwNTJENDM2Qg\=\=",
        "cluster.id = MkU3OEVBNTcwNTJENDM2Qg==",
        "cluster.id:MkU3OEVBNTcwNTJENDM2Qg==",
    ],
)
def test_a_cluster_id_is_read_as_java_wrote_it(tmp_path: Path, node: Path, line: str) -> None:
    """Even one that ends in equals signs, which Java escapes."""
    (node / "meta.properties").write_bytes(f"#\xe9\n{line}\n".encode("latin-1"))
    plan = prepared(tmp_path, node, cluster="MkU3OEVBNTcwNTJENDM2Qg==")
    assert clusters(plan) == ["MkU3OEVBNTcwNTJENDM2Qg=="]


def test_meta_properties_that_cannot_be_read_are_reported(tmp_path: Path, node: Path) -> None:
    """The line names the file; with --cluster the log is used."""
    meta = node / "meta.properties"
    meta.unlink()
    meta.mkdir()
    reason = f"{meta} cannot be read: Is a directory"
    with pytest.raises(ReplayUsageError, match=f"{reason}: give the cluster's id with --cluster"):
        prepared(tmp_path, node)
    plan = prepared(tmp_path, node, cluster="given")
    assert (clusters(plan), plan.problems) == (["given"], [reason])


@pytest.mark.parametrize("path", [".", SEGMENT, f"./{SEGMENT}", "..", f"../{LOG}"])
def test_a_relative_path_is_the_one_that_it_names(
    tmp_path: Path, node: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """From within a log directory its meta.properties are found; lines show the path as given."""
    monkeypatch.chdir(node / LOG)
    plan = prepared(tmp_path, path)
    assert (clusters(plan), plan.problems) == ([CLUSTER], [])
    empty = tmp_path / "empty"
    empty.mkdir()
    assert prepared(tmp_path, os.path.relpath(empty)).problems == [
        "../../empty holds no metadata log, snapshot or text of kafka-dump-log"
    ]


def test_a_relative_log_is_known_by_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory identifies a corrupt segment of the metadata log, even from within it."""
    path = Log().add(level(19)).add(level(20)).write(tmp_path / "node")
    content = bytearray(path.read_bytes())
    content[70] ^= 1
    path.write_bytes(content)
    monkeypatch.chdir(path.parent)
    assert clusters(prepared(tmp_path, path.name)) == [CLUSTER]


def test_links_to_directories_are_followed_once(tmp_path: Path, node: Path) -> None:
    """Links to a node's directory and to a log's own, and circular links."""
    for name, target in (("linked", node), ("circle", tmp_path / "given")):
        (tmp_path / "given").mkdir(exist_ok=True)
        (tmp_path / "given" / name).symlink_to(target)
    assert clusters(prepared(tmp_path, tmp_path / "given")) == [CLUSTER]
    data = tmp_path / "data"
    data.mkdir()
    (data / LOG).symlink_to(node / LOG)
    (data / "meta.properties").write_text("cluster.id=beside-the-link\n")
    assert clusters(prepared(tmp_path, data)) == ["beside-the-link"]
    (data / "meta.properties").unlink()
    (tmp_path / "log").symlink_to(node / LOG)
    assert clusters(prepared(tmp_path, tmp_path / "log")) == [CLUSTER]


def test_what_is_given_twice_is_taken_once(tmp_path: Path, node: Path) -> None:
    """The same path, nested paths, the same bundle: no problem, and one copy."""
    bundle = tmp_path / "bundle.zip"
    with zipfile.ZipFile(bundle, "w") as archive:
        archive.write(node / LOG / SEGMENT, f"n/{LOG}/{SEGMENT}")
        archive.write(node / "meta.properties", "n/meta.properties")
    for paths in ((node, node), (node, node / LOG), (node / LOG, node), (bundle, bundle)):
        plan = prepared(tmp_path / str(len(list(tmp_path.iterdir()))), *paths)
        assert plan.problems == []
        assert [len(cluster_plan.steps) for cluster_plan in plan.cluster_plans] == [1]


def test_a_pipe_is_refused_without_reading_it(tmp_path: Path) -> None:
    """Reading from it would block for ever."""
    os.mkfifo(tmp_path / "pipe.txt")
    plan = prepared(tmp_path, tmp_path / "pipe.txt")
    (line,) = plan.problems
    assert "is a pipe or a device" in line
    assert line.endswith("write it into a file, and give that")


def patched(content: bytes, local: int, central: int, value: int) -> bytes:
    """A zip with a byte set in the local and in the central header of each of its files."""
    data = bytearray(content)
    for signature, position in ((b"PK\3\4", local), (b"PK\1\2", central)):
        start = data.find(signature)
        while start >= 0:
            data[start + position] = value
            start = data.find(signature, start + 1)
    return bytes(data)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda content: patched(content, 6, 8, 1), "it is encrypted"),
        (lambda content: patched(content, 8, 10, 97), "That compression method is not supported"),
    ],
)
def test_a_file_of_a_zip_that_cannot_be_unpacked_is_named(
    tmp_path: Path, node: Path, spoil: Callable[[bytes], bytes], said: str
) -> None:
    """It has a separate line, irrelevant files share one; other paths are still used."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(node / LOG / SEGMENT, f"n/{LOG}/{SEGMENT}")
        archive.writestr("n/one.txt", "of no use")
        archive.writestr("n/two.txt", "of no use")
    bundle = tmp_path / "bundle.zip"
    bundle.write_bytes(spoil(buffer.getvalue()))
    plan = prepared(tmp_path, bundle, node)
    assert clusters(plan) == [CLUSTER]
    assert plan.problems == [
        f"{bundle} holds n/{LOG}/{SEGMENT}, which cannot be unpacked: {said}",
        f"{bundle} holds 2 other files that cannot be unpacked: {said}",
    ]


@pytest.mark.parametrize("kind", ["zip", "gz", "bz2", "xz"])
def test_damage_in_an_archive_is_reported(tmp_path: Path, node: Path, kind: str) -> None:
    """Wherever bytes of it are wrong nothing is raised; of what is packed as one stream all comes
    out as it went in, or a line says why not."""
    good = tmp_path / f"good.{kind if kind == 'zip' else f'tar.{kind}'}"
    if kind == "zip":
        with zipfile.ZipFile(good, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(node / LOG / SEGMENT, f"n/{LOG}/{SEGMENT}")
    else:
        with tarfile.open(good, f"w:{kind}") as tar:  # type: ignore[call-overload]
            tar.add(node, "n")
    whole = unpacked(good, tmp_path / "whole")
    assert whole[0] == []
    content = good.read_bytes()
    for at in range(0, len(content), 5):
        bundle = tmp_path / f"{at}-{good.name}"
        bundle.write_bytes(content[:at] + b"\xff" * 8 + content[at + 8 :])
        lines, files = unpacked(bundle, tmp_path / str(at))
        assert not any("\n" in line for line in lines)
        assert lines or files == whole[1] or kind == "zip"


def unpacked(bundle: Path, into: Path) -> tuple[list[str], dict[str, bytes]]:
    """The lines about an archive, and its unpacked files."""
    lines = list(unpack(bundle, into))
    files = (path for path in into.rglob("*") if path.is_file())
    return lines, {str(path.relative_to(into)): path.read_bytes() for path in files}


def test_names_and_links_in_a_tar_are_taken_as_far_as_they_can_be(
    tmp_path: Path, node: Path
) -> None:
    """Absolute names are unpacked below the archive's directory; links get the content of their
    targets; names and links that lead outside are reported."""
    bundle = tmp_path / "bundle.tar"
    log, meta = (node / LOG / SEGMENT).read_bytes(), (node / "meta.properties").read_bytes()
    with tarfile.open(bundle, "w") as archive:
        for name, content in (("/n/meta.properties", meta), ("/n/data", log), ("../up.log", b"")):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        for name, type_, target in (
            (f"/n/{LOG}/{SEGMENT}", tarfile.LNKTYPE, "/n/data"),
            (f"../{SEGMENT}", tarfile.LNKTYPE, "/n/data"),
            (f"/n/{1:020}.log", tarfile.SYMTYPE, "nowhere"),
            ("/n/server.log", tarfile.SYMTYPE, "nowhere"),
            (f"/n/{'x' * 300}/{SEGMENT}", tarfile.LNKTYPE, "/n/data"),
        ):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = type_, target
            archive.addfile(entry)
    plan = prepared(tmp_path, bundle)
    assert clusters(plan) == [CLUSTER]
    assert plan.problems == [
        f"{bundle} holds ../{SEGMENT}, whose name leads out of it; passed over",
        f"{bundle} holds /n/{1:020}.log, a link to what it does not hold; passed over",
        f"{bundle} holds /n/{'x' * 300}/{SEGMENT}, which cannot be unpacked: File name too long",
    ]
    written = [path for path in (tmp_path / "scratch").rglob("*") if path.is_file()]
    assert sorted(path.name for path in written) == [SEGMENT, "meta.properties"]


@pytest.mark.parametrize(
    ("name", "steps", "said"),
    [
        (r"C:\kafka\00000000000000000000.log", 1, ""),
        (r"C:\k\00000000000000000090-0000000001.checkpoint", 1, ""),
        ("backup.checkpoint", 0, "backup.checkpoint is not the name of a metadata snapshot"),
    ],
)
def test_a_text_lists_files_by_any_name(tmp_path: Path, name: str, steps: int, said: str) -> None:
    """Names as the tool prints them on Windows are accepted; an invalid name is reported."""
    text = tmp_path / "dump.txt"
    text.write_text(f"Dumping {name}\n{PRINTED_LOG}")
    plan = prepared(tmp_path, text, cluster="c")
    assert [len(cluster_plan.steps) for cluster_plan in plan.cluster_plans] == [steps] * bool(steps)
    assert [line.partition(": ")[2] for line in plan.problems] == [said] * bool(said)


@pytest.mark.parametrize(
    "prefix",
    ["\n", "\ufeff", "SLF4J: Class path contains multiple SLF4J bindings.\n", "\ufeff\r\n\r\n"],
)
def test_a_text_may_begin_with_other_lines(tmp_path: Path, prefix: str) -> None:
    """A byte order mark, blank lines and lines of Java's loggers are skipped, in a bundle too."""
    text = tmp_path / "dump.txt"
    path = f"/data/{LOG}/{SEGMENT}"
    text.write_bytes(f"{prefix}Dumping {path}\nLog starting offset: 0\n{PRINTED_LOG}".encode())
    bundle = tmp_path / "bundle.zip"
    with zipfile.ZipFile(bundle, "w") as archive:
        archive.write(text, "dump.txt")
    for source, label in ((text, f"{text}"), (bundle, f"{bundle}/dump.txt")):
        plan = prepared(tmp_path, source, cluster="c")
        assert plan.problems == []
        (slice_,) = plan.cluster_plans[0].steps
        assert slice_.log_range.file_range.label == f"{label} ({SEGMENT})"  # type: ignore[union-attr]
