"""A cache without jars, for tests that start no Java: the other one would fetch them."""

from pathlib import Path

from featurewatch.stack.java.jars import Cache, Jars


class NoJars(Cache):
    """A cache of archives alone."""

    def class_path(self, release: str, jars: Jars = Jars.SERVER) -> list[Path]:
        """Returns no jars."""
        return []
