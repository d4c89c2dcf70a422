"""The files of the page, read once; their address has a digest of all, so browsers may store them.

The page's own address has no digest, and all addresses in it are relative: it works under any path
that a proxy puts before it.
"""

from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final, NamedTuple

_TYPES: Final = {
    "css": "text/css",
    "html": "text/html",
    "js": "text/javascript",
    "svg": "image/svg+xml",
}
INDEX: Final = "index.html"
LOGIN_PAGE: Final = "login.html"
_MARK: Final = b"static/files/"
"""How the page addresses its files; the digest takes the place of the second part."""


class StaticFile(NamedTuple):
    """A file as it is served."""

    content: bytes
    content_type: str


class StaticFiles:
    """The page, and the files that it loads, by their paths below the digest."""

    def __init__(self) -> None:
        found = dict(_read(files(__package__).joinpath("static"), ""))
        digest = sha256()
        for path, file in sorted(found.items()):
            digest.update(path.encode() + b"\0" + file.content + b"\0")
        self.digest = digest.hexdigest()[:16]
        self.index, self.login = (self._page(found.pop(name)) for name in (INDEX, LOGIN_PAGE))
        self._files = found

    def _page(self, file: StaticFile) -> StaticFile:
        content = file.content.replace(_MARK, b"static/%b/" % self.digest.encode())
        return StaticFile(content, file.content_type)

    def get(self, digest: str, path: str) -> StaticFile | None:
        """A file by its path, ``vendor/preact.js``; None if this version has no such file."""
        return self._files.get(path) if digest == self.digest else None


def _read(folder: Traversable, prefix: str) -> list[tuple[str, StaticFile]]:
    found: list[tuple[str, StaticFile]] = []
    for item in folder.iterdir():
        if item.is_dir():
            found += _read(item, f"{prefix}{item.name}/")
        elif (content_type := _TYPES.get(item.name.rpartition(".")[2])) is not None:
            found.append((prefix + item.name, StaticFile(item.read_bytes(), content_type)))
    return found
