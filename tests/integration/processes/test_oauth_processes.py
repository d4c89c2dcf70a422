"""Processes that log in with OAuth tokens of some seconds: source, worker, readers, pipeline."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer

from featurewatch.cli.config.settings import load
from featurewatch.common.private_files import write_private
from featurewatch.pipeline.spark.session import BRIEF_JVM
from featurewatch.stack.java.jars import Cache
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.topics import METADATA_LOG
from tests.guarded import GuardedNode
from tests.oauth_node import client_properties, oauth_node
from tests.oidc import SECRET, Provider, running_provider
from tests.processes import Process, wait_ready

pytestmark = [pytest.mark.stack, pytest.mark.nightly]

RELEASE = "4.3.0"
LIFETIME_S = 8


@dataclass(frozen=True)
class OauthBus:
    """A node that is bus and watched cluster, and the provider of its tokens."""

    node: GuardedNode
    provider: Provider
    directory: Path

    def configuration(self) -> Path:
        """The configuration file, with one properties file for all."""
        login = self.directory / "client.properties"
        properties = client_properties(self.provider)
        write_private(login, "".join(f"{name}={value}\n" for name, value in properties.items()))
        content = {
            "bus": {
                "bootstrap_servers": self.node.broker,
                "command_config": str(login),
                "partitions": 1,
            },
            "clusters": [{"controllers": self.node.controller, "command_config": str(login)}],
        }
        file = self.directory / "featurewatch.yaml"
        file.write_text(yaml.safe_dump(content))
        return file


@pytest.fixture(scope="module")
def bus(stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OauthBus]:
    """The running node."""
    directory = tmp_path_factory.mktemp("oauth-processes")
    with running_provider() as provider:
        provider.lifetime_s = LIFETIME_S
        with oauth_node(directory / "cluster", stack_cache, RELEASE, provider) as node:
            yield OauthBus(node, provider, directory)


def ours(provider: Provider, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of featurewatch, to its end; a JVM in it may fetch tokens from the provider."""
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={provider.url}"
    env = {**os.environ, "JDK_JAVA_OPTIONS": f"{BRIEF_JVM} {allowed}"}
    command = [sys.executable, "-m", "featurewatch", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=540, env=env
    )


def test_source_worker_and_readers_outlive_their_tokens(bus: OauthBus) -> None:
    """Both are ready, stay up over three lifetimes, and no log shows the secret."""
    configuration = str(bus.configuration())
    processes = [
        Process(f"{name}-oauth", [name, "--config", configuration], bus.directory)
        for name in ("worker", "watch")
    ]
    try:
        for process in processes:
            process.start()
        wait_ready(processes)
        granted = len(bus.provider.bodies)
        time.sleep(3 * LIFETIME_S)
        assert len(bus.provider.bodies) > granted
        deadline = time.monotonic() + 60
        shown = ours(bus.provider, "state", "--config", configuration)
        while bus.node.cluster.cluster_id not in shown.stdout:
            assert time.monotonic() < deadline, processes[0].log.read_text()
            shown = ours(bus.provider, "state", "--config", configuration)
        assert SECRET not in shown.stdout + shown.stderr
        for process in processes:
            assert process.ended is None
            assert SECRET not in process.log.read_text()
    finally:
        for process in processes:
            process.kill()


def test_the_pipeline_reads_with_tokens_that_java_fetches(bus: OauthBus, tmp_path: Path) -> None:
    """Messages of a topic reach the lake."""
    configuration = bus.configuration()
    settings = load(configuration).bus_settings()
    ensure_topics(settings)
    producer = Producer(settings.client())
    producer.produce(settings.topic(METADATA_LOG), b"{}", b"a-cluster")
    assert producer.flush(30) == 0
    lake = tmp_path / "lake"
    arguments = ("run", "--once", "--config", str(configuration), "--lake", str(lake))
    result = ours(bus.provider, "pipeline", *arguments)
    assert result.returncode == 0, result.stderr[-3000:]
    log = (lake / "bronze" / "messages" / "_delta_log").glob("*.json")
    assert "numRecords" in "".join(file.read_text() for file in log)
    assert SECRET not in result.stderr
