"""Reads text files in a jar, with bounds: a jar is input like any other."""

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

from featurewatch.stack.errors import ArtifactError

MAX_JAR_BYTES: Final = 256 << 20
MAX_ENTRIES: Final = 100_000
MAX_TEXT_BYTES: Final = 1 << 20
MAX_TEXTS: Final = 2_000
"""Most files to read from one folder; Kafka 4.4 has 200 messages in ``kafka-clients``."""


class Archive:
    """A jar that is open for reading; a context manager.

    Raises:
        ArtifactError: where the file is missing, is not a jar, or is too large.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            if file.stat().st_size > MAX_JAR_BYTES:
                raise ArtifactError(f"{file} is larger than {MAX_JAR_BYTES >> 20} MiB: not a jar")
            self._zip = zipfile.ZipFile(file)
        except OSError as error:
            raise ArtifactError(f"{file} cannot be read ({error.strerror})") from None
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise ArtifactError(f"{file} is not a jar ({error})") from None
        if len(self._zip.namelist()) > MAX_ENTRIES:
            self._zip.close()
            raise ArtifactError(f"{file} has more than {MAX_ENTRIES} files: not a jar of Kafka")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def text(self, name: str) -> str | None:
        """The text of a file; None if the jar does not have it."""
        try:
            entry = self._zip.getinfo(name)
        except KeyError:
            return None
        # The size in the archive's directory bounds what is unpacked: zipfile stops there.
        if entry.file_size > MAX_TEXT_BYTES:
            raise ArtifactError(f"{self._file}: {name} is larger than {MAX_TEXT_BYTES >> 20} MiB")
        try:
            return self._zip.read(entry).decode()
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError) as error:
            raise ArtifactError(f"{self._file}: {name} cannot be read ({error})") from None
        except OSError as error:
            raise ArtifactError(f"{self._file} cannot be read ({error.strerror})") from None

    def texts(self, folder: str, suffix: str) -> Iterator[tuple[str, str]]:
        """Name and text of each file in ``folder`` (with its slash) that ends in ``suffix``."""
        names = [
            name
            for name in self._zip.namelist()
            if name.startswith(folder) and name.endswith(suffix)
        ]
        if len(names) > MAX_TEXTS:
            raise ArtifactError(f"{self._file} has {len(names)} files in {folder}: not Kafka's")
        for name in names:
            yield name, self.text(name) or ""
