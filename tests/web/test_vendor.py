"""The files of the page; those of other projects are what their manifest names."""

import json
import re
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from featurewatch.web.request_rules import HEADERS
from featurewatch.web.static_files import StaticFiles
from tests.paths import PACKAGE

STATIC = PACKAGE / "web" / "static"
VENDOR = STATIC / "vendor"
MANIFEST = json.loads((VENDOR / "vendor.json").read_text())["files"]
OWN = sorted(STATIC.glob("*.js"))


@pytest.mark.parametrize("entry", MANIFEST, ids=lambda entry: entry["name"])
def test_a_vendored_file_is_what_its_manifest_names(entry: dict[str, str]) -> None:
    """Digest, version in its name, licence beside it, and the digest of the package it is from."""
    content = (VENDOR / entry["file"]).read_bytes()
    assert sha256(content).hexdigest() == entry["sha256"]
    assert entry["file"] == f"{entry['name']}-{entry['version']}.js"
    assert entry["license"] in ("MIT", "Apache-2.0")
    assert len((VENDOR / entry["license_file"]).read_text()) > 1_000
    assert entry["npm"].startswith("sha512-")
    assert b"sourceMappingURL" not in content


def test_the_manifest_names_every_vendored_file() -> None:
    """No file of another project is there without its licence."""
    named = {name for entry in MANIFEST for name in (entry["file"], entry["license_file"])}
    assert {file.name for file in VENDOR.iterdir()} == named | {"vendor.json"}


def test_modules_import_files_that_are_there() -> None:
    """By relative paths, so that they load under any path, and without an import map."""
    for file in OWN:
        for target in re.findall(r"from '([^']+)'", file.read_text()):
            assert target.startswith("./"), (file.name, target)
            assert (STATIC / target).is_file(), (file.name, target)


def test_own_modules_write_no_markup() -> None:
    """Content of clusters becomes text: nothing assigns HTML, or evaluates a string."""
    for file in OWN:
        text = file.read_text()
        for word in ("innerHTML", "outerHTML", "insertAdjacent", "dangerously", "eval(", "style="):
            assert word not in text, (file.name, word)


class _Addresses(HTMLParser):
    """Collects the addresses in a page, and whether anything is inline."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inline: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes what a tag refers to."""
        given = dict(attrs)
        self.found += [value for name in ("src", "href") if (value := given.get(name))]
        if tag == "style" or (tag == "script" and "src" not in given) or "style" in given:
            self.inline.append(tag)


def test_the_page_works_under_any_path() -> None:
    """All of its addresses are relative, lead to files of this version, and nothing is inline."""
    static = StaticFiles()
    parser = _Addresses()
    parser.feed(static.index.content.decode())
    assert parser.inline == []
    files = [address for address in parser.found if address.startswith("static/")]
    for address in files:
        _, digest, path = address.split("/", 2)
        assert static.get(digest, path) is not None, address
    others = {address for address in parser.found if address not in files}
    assert len(files) == 2
    assert all(address.startswith(("data:", "api/v1/")) for address in others)
    assert "connect-src 'self'" in HEADERS["Content-Security-Policy"]


def test_a_file_of_another_version_is_not_served() -> None:
    """Files are stored by browsers for good, so their address must change with them."""
    static = StaticFiles()
    assert static.get(static.digest, "app.js") is not None
    for digest, path in (("0" * 16, "app.js"), (static.digest, "../settings.py"), ("", "app.js")):
        assert static.get(digest, path) is None
