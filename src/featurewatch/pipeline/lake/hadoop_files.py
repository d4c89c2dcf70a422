"""Access to files of the lake that are not tables, on any file system, through Hadoop."""

from typing import TYPE_CHECKING, Any

from featurewatch.pipeline.spark.session import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class HadoopFiles:
    """Files and directories, named by URI or path."""

    def __init__(self, session: "SparkSession") -> None:
        self._jvm = jvm(session)
        self._hadoop = session._jsc.hadoopConfiguration()

    def has_any(self, directory: str, besides: str = "") -> bool:
        """Whether a directory exists and holds a file that is not hidden.

        Files whose names begin with ``besides`` do not count, unless it is empty.
        """
        ignored = (".", "_", besides) if besides else (".", "_")
        return any(not name.startswith(ignored) for name in self.names(directory))

    def names(self, directory: str) -> list[str]:
        """Returns the names of the files of a directory; none if it does not exist."""
        path, system = self._find(directory)
        if not system.exists(path):
            return []
        return [status.getPath().getName() for status in system.listStatus(path)]

    def text(self, name: str) -> str:
        """Returns the content of a file, which is UTF-8."""
        path, system = self._find(name)
        stream = system.open(path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def exists(self, name: str) -> bool:
        """Whether a file or directory exists."""
        path, system = self._find(name)
        return bool(system.exists(path))

    def create(self, name: str) -> None:
        """Creates an empty file, and the directories above it."""
        path, system = self._find(name)
        system.create(path).close()

    def write(self, name: str, text: str) -> None:
        """Replaces the content of a file by a text in UTF-8."""
        path, system = self._find(name)
        stream = system.create(path, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def place(self, name: str) -> str:
        """Returns the whole path of a file or directory, with its scheme."""
        path, system = self._find(name)
        return str(system.makeQualified(path).toString())

    def remove(self, directory: str) -> None:
        """Removes a directory with its content, if it exists."""
        path, system = self._find(directory)
        system.delete(path, True)

    def _find(self, name: str) -> tuple[Any, Any]:
        path = self._jvm.org.apache.hadoop.fs.Path(name)
        return path, path.getFileSystem(self._hadoop)
