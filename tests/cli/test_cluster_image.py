"""A cluster in ZooKeeper mode is read once, without being told its id."""

from pathlib import Path

import pytest

from featurewatch.cli.config.settings import ClusterSection as Watched
from featurewatch.cli.runtime.cluster_image import ClusterNotReadError, read_image
from featurewatch.stack.zookeeper.ensemble import Ensemble
from featurewatch.tables.image.cluster import Authority
from tests.cli.commands import featurewatch
from tests.integration.zookeeper.support import CLUSTER, chroot, register, writer


@pytest.mark.stack
def test_the_id_is_read_from_zookeeper(ensemble: Ensemble) -> None:
    """It is the one under the chroot; one that is given must be the same."""
    root = chroot()
    with writer(ensemble.connect_string) as zk:
        register(zk, root)
    hosts = ensemble.connect_string + root
    image = read_image(Watched(zookeeper=hosts))
    assert (image.cluster, image.authority, image.ready) == (CLUSTER, Authority.ZOOKEEPER, True)
    with pytest.raises(ClusterNotReadError, match=f"znodes of cluster {CLUSTER}, not of another"):
        read_image(Watched(zookeeper=hosts, cluster_id="another"))


@pytest.mark.stack
def test_a_missing_chroot_is_in_the_error(ensemble: Ensemble, tmp_path: Path) -> None:
    """The source's own reason, and exit code 4: nothing is wrong with the command line."""
    hosts = ensemble.connect_string + chroot()
    completed = featurewatch(tmp_path, "readiness", "--zookeeper", hosts)
    assert (completed.returncode, completed.stdout) == (4, "")
    assert hosts in completed.stderr
    assert "the chroot does not exist: check the path after the addresses" in completed.stderr


def test_an_unreachable_ensemble_is_in_the_error() -> None:
    """Within the source's patience, or when the time is over."""
    with pytest.raises(ClusterNotReadError, match=r"127\.0\.0\.1:1.*nobody listens there"):
        read_image(Watched(zookeeper="127.0.0.1:1"), timeout_s=1.0)
