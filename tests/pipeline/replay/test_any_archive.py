"""Any bytes in an archive are lines about it, and files below the directory that was named."""

import bz2
import gzip
import io
import lzma
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from featurewatch.pipeline.replay.archives import unpack

SEGMENT = f"{0:020}.log"
NAMES = st.sampled_from([SEGMENT, "meta.properties", f"n/{SEGMENT}", f"../{SEGMENT}", "a.zip"])
KINDS = (tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE,
         tarfile.GNUTYPE_SPARSE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME)  # fmt: skip
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "tar": bytes,
    "tar.gz": gzip.compress,
    "tar.bz2": bz2.compress,
    "tar.xz": lzma.compress,
}


@st.composite
def tars(draw: st.DrawFn) -> bytes:
    """A tar whose entries are of any kind and contradict each other."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for _ in range(draw(st.integers(0, 4))):
            entry = tarfile.TarInfo(draw(NAMES | st.text("ab/.\n\0", min_size=1, max_size=9)))
            entry.type = draw(st.sampled_from(KINDS))
            entry.linkname = draw(NAMES | st.text("ab/.\n", max_size=9))
            content = draw(st.binary(max_size=600))
            entry.size = len(content) if entry.type == tarfile.REGTYPE else 0
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


@st.composite
def zips(draw: st.DrawFn) -> bytes:
    """A zip whose names lead anywhere."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for _ in range(draw(st.integers(0, 4))):
            name = draw(NAMES | st.text("ab/.\\é", min_size=1, max_size=9))
            kind = draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
            archive.writestr(name, draw(st.binary(max_size=600)), kind)
    return out.getvalue()


@st.composite
def archives(draw: st.DrawFn) -> tuple[str, bytes]:
    """The end of a file's name, and a content that may be damaged at several places."""
    kind = draw(st.sampled_from(["zip", *PACKERS]))
    plain = draw(zips() if kind == "zip" else tars() | st.binary(max_size=100))
    damage = st.lists(st.tuples(st.integers(0, 4_000), st.binary(max_size=12)), max_size=3)

    def damaged(content: bytes) -> bytes:
        for at, patch in draw(damage):
            at %= len(content) + 1
            content = content[:at] + patch + content[at + len(patch) :]
        return content

    return kind, damaged(PACKERS.get(kind, bytes)(damaged(plain)))


def zip_of(name: str) -> bytes:
    """A zip with one file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, b"content")
    return out.getvalue()


@pytest.mark.fuzz
@pytest.mark.filterwarnings("ignore:Duplicate name")
@example(("zip", zip_of("nameless").replace(b"nameless", b"\0ameless")))
@example(("zip", zip_of(f"../\n{'x' * 9_000}/{SEGMENT}")))
@given(archives())
@settings(max_examples=100)
def test_any_archive_is_unpacked_as_far_as_it_can_be(archive: tuple[str, bytes]) -> None:
    """Nothing is raised, each line is one line, and nothing is written anywhere else."""
    kind, content = archive
    with tempfile.TemporaryDirectory() as scratch:
        path, into = Path(scratch, f"bundle.{kind}"), Path(scratch, "in", "to")
        path.write_bytes(content)
        for line in unpack(path, into):
            assert line.isprintable()
            assert len(line) < 5_000
        beside = {found for found in Path(scratch).rglob("*") if into not in found.parents}
        assert beside == {path, into.parent, into}
        assert not any(found.is_symlink() for found in into.rglob("*"))
