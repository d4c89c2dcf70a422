"""Each worker has its own id."""

import fcntl
from contextlib import ExitStack
from pathlib import Path

import pytest

from featurewatch.agents.membership import WorkerIdTakenError, own_worker_id


def test_workers_with_one_directory_have_different_ids(tmp_path: Path) -> None:
    """The first free number; a worker that comes after one that has ended gets its id."""
    with ExitStack() as stack:
        first = stack.enter_context(own_worker_id(tmp_path, "node a"))
        with own_worker_id(tmp_path, "node a") as second:
            assert first.startswith("node-a-")
            assert (first[-2:], second) == ("-1", f"{first[:-2]}-2")
        assert stack.enter_context(own_worker_id(tmp_path, "node a")) == second
    with own_worker_id(tmp_path, "node a") as again:
        assert again == first


def test_workers_of_one_host_with_directories_of_their_own_have_different_ids(
    tmp_path: Path,
) -> None:
    """Nothing but the consumer group would tell them of each other."""
    with own_worker_id(tmp_path / "a", "host") as one, own_worker_id(tmp_path / "b", "host") as two:
        assert one != two


def test_an_id_that_is_taken_is_named(tmp_path: Path) -> None:
    """Two workers with one configured id on one machine: the second one does not run."""
    with (
        own_worker_id(tmp_path, "host", "blue"),
        pytest.raises(WorkerIdTakenError, match=r"the id blue .*give each its own id by --id"),
        own_worker_id(tmp_path, "host", "blue"),
    ):
        pytest.fail("two workers have one id")


@pytest.mark.parametrize("host", ["", "höst/../x", "h" * 300])
def test_any_host_name_makes_a_name_of_a_directory(tmp_path: Path, host: str) -> None:
    """The lock is below the data directory, and is held."""
    with own_worker_id(tmp_path, host) as name:
        lock = (tmp_path / name / "lock").resolve()
        assert lock.is_relative_to(tmp_path.resolve())
        with lock.open() as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
