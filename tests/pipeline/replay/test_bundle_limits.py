"""Limits on what support bundles unpack to: a bundle that exceeds one loses nothing else."""

import gzip
import io
import re
import struct
import subprocess
import tarfile
import tracemalloc
import zipfile
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from featurewatch.cli.config.settings import load
from featurewatch.pipeline.replay.bundle_limits import DEFAULT_BUNDLE_LIMITS, BundleLimits
from featurewatch.pipeline.replay.plan import ReplayPlan, prepare
from tests.paths import ROOT
from tests.pipeline.replay.logs import CLUSTER, Log, level, noop

LOG = "__cluster_metadata-0"
SEGMENT = f"{0:020}.log"
MIB = 1 << 20


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A node's directory with a log."""
    Log().add(level(19)).add(noop()).write(tmp_path / "node")
    return tmp_path / "node"


LIMITS = replace(DEFAULT_BUNDLE_LIMITS, unmeasured_bytes=MIB)
"""The default ones, with a ratio that small archives exceed."""


def planned(scratch: Path, *paths: Path, limits: BundleLimits = LIMITS) -> tuple[ReplayPlan, int]:
    """The plan, and the bytes that were unpacked for it, each hard-linked file once."""
    plan = prepare(paths, "", scratch / "scratch", limits)
    stats = {path.stat().st_ino: path.stat() for path in (scratch / "scratch").rglob("*")}
    return plan, sum(stat.st_size for stat in stats.values())


def add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    """Adds a file to a tar."""
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def with_log(path: Path, node: Path, *others: tuple[str, bytes]) -> Path:
    """A zip with a node's log, and other files behind it."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(node / "meta.properties", "n/meta.properties")
        archive.write(node / LOG / SEGMENT, f"n/{LOG}/{SEGMENT}")
        for name, content in others:
            archive.writestr(name, content)
    return path


def is_complete(plan: ReplayPlan) -> bool:
    """Whether the log of `node` is planned whole."""
    return [(p.cluster, len(p.steps)) for p in plan.cluster_plans] == [(CLUSTER, 1)]


def test_a_sparse_file_is_refused(tmp_path: Path, node: Path) -> None:
    """Two kilobytes that claim to be two gibibytes are not written, and the log beside them is
    used."""
    hole = tmp_path / "made" / f"{0:020}.log"
    hole.parent.mkdir()
    with hole.open("wb") as file:
        file.truncate(2 << 30)
    bundle = tmp_path / "bundle.tar"
    command = ["tar", "--sparse", "-cf", f"{bundle}", "-C", f"{tmp_path}", "node"]
    command += ["-C", f"{hole.parent}", "."]
    subprocess.run(command, check=True)
    assert bundle.stat().st_size < MIB
    plan, unpacked_bytes = planned(tmp_path, bundle)
    assert plan.problems == [
        f"{bundle} holds ./{hole.name}, a sparse file, which can be of any length: pack it without "
        "--sparse; passed over"
    ]
    assert is_complete(plan)
    assert unpacked_bytes < MIB


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "tar.bz2", "tar.xz"])
@pytest.mark.parametrize("name", [f"{9:020}.log", "unused.bin"])
def test_the_compression_ratio_is_limited(tmp_path: Path, node: Path, kind: str, name: str) -> None:
    """An archive stops where it exceeds the ratio, even in files that are skipped (a zip can skip
    them without reading); what was unpacked before is used."""
    bundle = tmp_path / f"bundle.{kind}"
    zeros = bytes(16 * MIB)
    if kind == "zip":
        with_log(bundle, node, (name, zeros))
    else:
        with tarfile.open(bundle, f"w:{kind[4:]}") as archive:  # type: ignore[call-overload]
            archive.add(node, "n")
            add(archive, name, zeros)
    plan, unpacked_bytes = planned(tmp_path, bundle)
    assert is_complete(plan)
    assert unpacked_bytes < MIB
    if (kind, name) == ("zip", "unused.bin"):
        assert plan.problems == []
        return
    assert plan.problems == [
        f"{bundle} unpacks to more than 200 times its {bundle.stat().st_size} bytes: nothing more "
        "of the archive is unpacked; if you trust it, raise the setting "
        "replay.max_compression_ratio (FEATUREWATCH_REPLAY__MAX_COMPRESSION_RATIO)"
    ]
    larger = replace(LIMITS, max_compression_ratio=1e6)
    plan, unpacked_bytes = planned(tmp_path / "larger", bundle, limits=larger)
    assert (unpacked_bytes > 16 * MIB) == (name != "unused.bin")


def test_the_indexes_of_a_small_node_are_no_reason(tmp_path: Path, node: Path) -> None:
    """Kafka reserves ten MiB for each of the two indexes of a segment that it writes to."""
    bundle = tmp_path / "bundle.tar.gz"
    with tarfile.open(bundle, "w:gz") as archive:
        archive.add(node, "n")
        for number in range(4):
            add(archive, f"n/{number:020}.index", bytes(10 * MIB))
    plan, _ = planned(tmp_path, bundle, limits=DEFAULT_BUNDLE_LIMITS)
    assert plan.problems == []
    assert is_complete(plan)


def test_the_unpacked_bytes_are_limited_over_all_archives_of_a_bundle(
    tmp_path: Path, node: Path
) -> None:
    """One line names the file; archives further in are skipped without a line; another bundle has
    separate limits."""
    inner = with_log(tmp_path / "inner.zip", node, ("a.txt", b"")).read_bytes()
    names = [f"{number:020}.log" for number in (7, 8)]
    bundle = with_log(
        tmp_path / "bundle.zip",
        node,
        *((name, bytes(MIB)) for name in names),
        ("inner.zip", inner),
    )
    other = with_log(tmp_path / "other.zip", node)
    limits = BundleLimits(max_unpacked_bytes=MIB + MIB // 2, max_compression_ratio=1e6)
    plan, unpacked_bytes = planned(tmp_path, bundle, other, limits=limits)
    assert plan.problems[:1] == [
        f"{bundle} unpacks to more than {limits.max_unpacked_bytes} bytes, at {names[1]}: nothing "
        "more of the bundle is unpacked; if you trust it, raise the setting "
        "replay.max_unpacked_bytes (FEATUREWATCH_REPLAY__MAX_UNPACKED_BYTES)"
    ]
    assert not any("other.zip" in line or "inner.zip" in line for line in plan.problems)
    assert is_complete(plan)
    assert unpacked_bytes < limits.max_unpacked_bytes + MIB // 4


def folders(archive: tarfile.TarFile, count: int) -> None:
    """Adds folders, of which a packed one takes a few bytes."""
    for number in range(count):
        entry = tarfile.TarInfo(f"f{number}")
        entry.type = tarfile.DIRTYPE
        archive.addfile(entry)


@pytest.mark.parametrize("has_link", [False, True])
def test_folders_in_a_tar_are_counted(tmp_path: Path, node: Path, has_link: bool) -> None:
    """Headers of folders take memory and time as files do; also where a link makes all of them be
    read at once."""
    bundle = tmp_path / "bundle.tar.gz"
    with tarfile.open(bundle, "w:gz") as archive:
        archive.add(node, "n")
        if has_link:
            entry = tarfile.TarInfo(f"n/{9:020}.log")
            entry.type, entry.linkname = tarfile.SYMTYPE, "later"
            archive.addfile(entry)
        folders(archive, 2_000)
    plan, _ = planned(tmp_path, bundle, limits=BundleLimits(max_files=1_000))
    (line,) = plan.problems
    assert re.search(r"has more than 1000 files and folders, at f99\d: nothing more", line)
    assert is_complete(plan)


def test_folders_in_a_zip_are_counted(tmp_path: Path, node: Path) -> None:
    """As those in a tar."""
    bundle = with_log(tmp_path / "bundle.zip", node, *((f"{n}/", b"") for n in range(20)))
    plan, _ = planned(tmp_path, bundle, limits=BundleLimits(max_files=10))
    (line,) = plan.problems
    assert "has more than 10 files and folders, at 8/: nothing more" in line
    assert is_complete(plan)


@pytest.mark.parametrize("name_chars", [0, 600])
def test_the_directory_of_a_zip_is_counted_before_it_is_made_objects(
    tmp_path: Path, name_chars: int
) -> None:
    """Hundreds of bytes of memory follow from each of its entries, of 46 bytes, and its end says
    how many there are, which may be wrong."""
    count = 100_001
    entry = struct.pack("<4s24x3H12x", b"PK\x01\x02", name_chars, 0, 0) + b"x" * name_chars
    directory = entry * count
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 3, 3, len(directory), 0, 0)
    bundle = tmp_path / "bundle.zip"
    bundle.write_bytes(directory + end)
    del directory
    tracemalloc.start()
    plan, _ = planned(tmp_path, bundle)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    place = f"a directory of {len(entry) * count} bytes" if name_chars else "its directory"
    assert plan.problems == [
        f"{bundle} has more than 100000 files and folders, in {place}: nothing more of the bundle "
        "is unpacked; if you trust it, raise the setting replay.max_files "
        "(FEATUREWATCH_REPLAY__MAX_FILES)"
    ]
    assert peak_bytes < 20 * MIB


def test_a_deep_path_hides_nothing_behind_it(tmp_path: Path, node: Path) -> None:
    """Python makes folders by recursion, whose end was that of the archive."""
    bundle, deep = tmp_path / "bundle.tar", "d/" * 1_200
    with tarfile.open(bundle, "w") as archive:
        add(archive, f"{deep}{9:020}.log", b"x")
        archive.add(node, "n")
    plan, _ = planned(tmp_path, bundle)
    (line,) = plan.problems
    assert "which is in more than 100 folders; passed over" in line
    assert is_complete(plan)


def test_the_files_are_limited(tmp_path: Path, node: Path) -> None:
    """Files that are not used count too."""
    others = [(f"{number}.txt", b"") for number in range(20)]
    bundle = with_log(tmp_path / "bundle.zip", node, *others)
    plan, _ = planned(tmp_path, bundle, limits=BundleLimits(max_files=10))
    assert plan.problems == [
        f"{bundle} has more than 10 files and folders, at 8.txt: nothing more of the bundle is "
        "unpacked; if you trust it, raise the setting replay.max_files "
        "(FEATUREWATCH_REPLAY__MAX_FILES)"
    ]
    assert is_complete(plan)


def test_archives_in_archives_are_limited(tmp_path: Path, node: Path) -> None:
    """One line for all archives that lie too deep; those above are used."""
    content = with_log(tmp_path / "0.zip", node).read_bytes()
    for number in range(1, 9):
        names = (f"{number - 1}a.zip", f"{number - 1}b.zip")
        others = [(name, content) for name in names[: 2 if number > 6 else 1]]
        content = with_log(tmp_path / f"{number}.zip", node, *others).read_bytes()
    plan, _ = planned(tmp_path, tmp_path / "8.zip")
    (line,) = plan.problems
    assert line == (
        f"{tmp_path}/8.zip/7a.zip/6a.zip/5a.zip/4a.zip is an archive in 4 others: nothing more of "
        "the archives in as many others is unpacked; if you trust it, raise the setting "
        "replay.max_archive_depth (FEATUREWATCH_REPLAY__MAX_ARCHIVE_DEPTH)"
    )
    assert is_complete(plan)
    deep, _ = planned(
        tmp_path / "deep", tmp_path / "8.zip", limits=BundleLimits(max_archive_depth=9)
    )
    assert deep.problems == []


def test_links_to_one_file_share_it(tmp_path: Path, node: Path) -> None:
    """A hundred links to a megabyte are a megabyte, and each is a file of its own name; a link may
    come before its file."""
    bundle = tmp_path / "bundle.tar"
    content = bytes(range(256)) * 4096
    with tarfile.open(bundle, "w") as archive:
        for number in range(1, 101):
            entry = tarfile.TarInfo(f"{number:020}.log")
            entry.type = tarfile.SYMTYPE if number % 2 else tarfile.LNKTYPE
            entry.linkname = "blob"
            archive.addfile(entry)
        add(archive, "blob", content)
        archive.add(node, "n")
    plan, unpacked_bytes = planned(tmp_path, bundle)
    assert (plan.problems, is_complete(plan)) == ([], True)
    assert unpacked_bytes < 2 * MIB
    files = list((tmp_path / "scratch").rglob(f"{'0' * 16}*.log"))
    assert sum(path.read_bytes() == content for path in files) == 100


def test_a_header_of_any_length_is_not_read_at_once(tmp_path: Path, node: Path) -> None:
    """The extended header of a tar is refused above 16 MiB."""
    entry = tarfile.TarInfo("PaxHeaders/x")
    entry.type, entry.size = tarfile.XHDTYPE, 512 * MIB
    bundle = tmp_path / "bundle.tar.gz"
    with gzip.open(bundle, "wb") as file:
        file.write(entry.tobuf(tarfile.USTAR_FORMAT))
        file.write(bytes(32 * MIB))
    plan, _ = planned(tmp_path, bundle, node)
    assert len(plan.problems) == 1
    assert plan.problems[0].startswith(f"{bundle} cannot be unpacked whole: ")
    assert is_complete(plan)


def test_the_settings_are_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their defaults are the limits' own; an environment variable raises one."""
    monkeypatch.delenv("FEATUREWATCH_CONFIG", raising=False)
    assert load(None).bundle_limits() == DEFAULT_BUNDLE_LIMITS
    monkeypatch.setenv("FEATUREWATCH_REPLAY__MAX_FILES", "7")
    assert load(None).bundle_limits() == BundleLimits(max_files=7)


def test_the_document_has_the_settings_and_their_defaults() -> None:
    """docs/explanation/security.md lists each with its default."""
    text = (ROOT / "docs" / "explanation" / "security.md").read_text()
    rows = re.findall(r"^\| `replay\.(\w+)` \| (\d+) \|", text, re.MULTILINE)
    assert {name: float(value) for name, value in rows} == asdict(DEFAULT_BUNDLE_LIMITS)
