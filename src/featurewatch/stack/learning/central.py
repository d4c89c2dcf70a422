"""Fetches the jars of a release that is not locked, from Maven Central.

This version of featurewatch cannot know the digests of a release that came after it. Those that
were seen are written into the release's file, and later jars must have them.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from featurewatch.stack.errors import ArtifactError
from featurewatch.stack.java.jars import Cache, Jars
from featurewatch.stack.java.lock import jar_lock
from featurewatch.stack.java.progress import on_stderr
from featurewatch.stack.learning.installed import LOGGING, READ, InstalledKafka

_GROUP: Final = "org/apache/kafka/"
_RELEASE: Final = re.compile(r"\d{1,2}\.\d{1,2}\.\d{1,3}")


def released_kafka(
    release: str,
    cache: Cache,
    pinned: Mapping[str, str],
    *,
    whole: bool = False,
    remotes: list[str] | None = None,
) -> InstalledKafka:
    """The jars of a release, which are fetched into the cache if they are missing.

    ``pinned`` are the digests that the jars had before, by file name. ``whole``: the class path
    of a controller too, as that of the newest release that is known; what the release does not
    have of it is left out. ``remotes`` are the addresses of repositories (default: jgo's).

    Raises:
        ArtifactError: if the release does not exist, cannot be fetched, or has other jars than
            before.
    """
    if _RELEASE.fullmatch(release) is None:
        raise ArtifactError(f"{release[:50]!r} is not a release of Kafka: write it like 4.5.0")
    read = [f"{_GROUP}{name}/{release}/{name}-{release}.jar" for name in READ]
    like_newest = _class_path(release)
    others = [path for path in like_newest if path.startswith(_GROUP) and path not in read]
    third_party = [path for path in like_newest if not path.startswith(_GROUP)]
    logging = [path for path in third_party if f"/{LOGGING}/" in path]
    cache.require(third_party if whole else logging, f"the libraries of Kafka {release}")
    with cache.locked():
        _fetch(release, read, cache, remotes)
        for path in others if whole else ():
            with suppress(ArtifactError):  # modules come and go
                _fetch(release, [path], cache, remotes)
    jars = {name: cache.repository / path for name, path in zip(READ, read, strict=True)}
    jars[LOGGING] = cache.repository / logging[0]
    present = [cache.repository / path for path in (*read, *others, *third_party)]
    kafka = InstalledKafka(release, jars, tuple(path for path in present if path.exists()))
    for name, digest in kafka.digests().items():
        if pinned.get(name, digest) != digest:
            raise ArtifactError(
                f"{name} has the SHA-256 {digest}, and had {pinned[name]} when Kafka {release} was "
                "learned: find out who changed it before you continue"
            )
    return kafka


def _class_path(release: str) -> list[str]:
    """The paths that the jars of a release have, if it has those of the newest locked release."""
    newest, of = max(
        jar_lock().class_paths.items(), key=lambda item: [int(part) for part in item[0].split(".")]
    )
    return [
        path.replace(newest, release) if path.startswith(_GROUP) else path
        for path in of[Jars.SERVER]
    ]


def _fetch(release: str, paths: Sequence[str], cache: Cache, remotes: list[str] | None) -> None:
    missing = [path for path in paths if not (cache.repository / path).exists()]
    if not missing:
        return
    try:
        # Here, since jgo is needed only where something is fetched.
        from featurewatch.stack.java.maven import MavenCentral, reason
    except ImportError as error:
        raise ArtifactError(
            f"fetching Kafka {release} needs the package jgo; run: pip install "
            "'featurewatch[stack]', or pass the directory of its jars with --libs"
        ) from error
    with on_stderr() as reporter:
        central = MavenCentral(cache.repository, reporter, remotes)
        for done, path in enumerate(missing, start=1):
            try:
                central.fetch(path, jar_lock().sha256.get(path))
            except OSError as error:  # requests' errors are OSErrors
                raise ArtifactError(
                    f"Kafka {release} could not be fetched ({reason(error)}); check the network, "
                    "or pass the directory of its jars with --libs"
                ) from error
            except RuntimeError:
                name = Path(path).name
                raise ArtifactError(
                    f"Maven Central has no {name}: choose a release of Kafka that it has"
                ) from None
            reporter.on_files(done, len(missing))
