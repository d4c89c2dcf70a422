"""One properties file, as Kafka's own tool takes it, serves every process and command."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import pkcs12

from featurewatch.cli.config.client_config import read_client_config
from featurewatch.cli.config.settings import load
from featurewatch.common.private_files import write_private
from featurewatch.kafka.client_config.clients import java_properties
from featurewatch.pipeline.spark.session import BRIEF_JVM
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.java.runtime import java
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.server_properties import Addresses
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec
from featurewatch.stack.process.ports import LOOPBACK, Ports
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.topics import METADATA_LOG
from tests.conformance.kafka_tools import FEATURES, KafkaTools, kafka_tools
from tests.conftest import Certificates
from tests.process_logs import started
from tests.processes import Process, wait_ready
from tests.waiting import eventually

pytestmark = pytest.mark.stack

RELEASE = "4.3.0"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
SECRET = 's3"cret\\'  # noqa: S105 - as above
JAAS_SECRET = SECRET.replace("\\", "\\\\").replace('"', '\\"')
IN_FILE = JAAS_SECRET.replace("\\", "\\\\")
CREDENTIALS = f'\\\n  username="watch" \\\n  password="{IN_FILE}";'
"""On continued lines, as a properties file escapes them."""
STORE_SECRET = "storepass"  # noqa: S105 - of a store that the test makes
HARMLESS = "client.id=upgrade\nrequest.timeout.ms=20000\nacks=1\ngroup.id=x\nssl.protocol=TLSv1.3\n"


@dataclass(frozen=True)
class Secured:
    """A node that is bus and watched cluster; both listeners demand TLS both ways, and a login."""

    cluster: Cluster
    bus: str
    quorum: str
    directory: Path

    def configuration(self, login: Path) -> Path:
        """The configuration file, with one properties file for all."""
        watched = {"controllers": self.quorum, "command_config": str(login)}
        bus = {"bootstrap_servers": self.bus, "command_config": str(login), "partitions": 1}
        file = self.directory / f"{login.stem}.yaml"
        file.write_text(
            yaml.safe_dump(
                {"bus": {**bus, "prefix": f"fw-{login.stem}"}, "clusters": [watched]},
            )
        )
        return file


def listeners(
    own: Addresses, bus: int, quorum: int, server: Path, authority: Path
) -> dict[str, str]:
    """Two more listeners, with SASL_SSL and client certificates."""
    name = "listener.name"
    properties = {
        "listeners": f"PLAINTEXT://{LOOPBACK}:{own.broker},CONTROLLER://{LOOPBACK}:{own.controller}"
        f",BUS://{LOOPBACK}:{bus},QUORUM://{LOOPBACK}:{quorum}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{own.broker},BUS://{LOOPBACK}:{bus}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
        "BUS:SASL_SSL,QUORUM:SASL_SSL",
        "controller.listener.names": "CONTROLLER,QUORUM",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    }
    escaped = JAAS_SECRET.replace("\\", "\\\\")
    for listener in ("bus", "quorum"):
        properties |= {
            f"{name}.{listener}.plain.sasl.jaas.config": f'{PLAIN} user_watch="{escaped}";',
            f"{name}.{listener}.scram-sha-512.sasl.jaas.config": f"{SCRAM};",
            f"{name}.{listener}.ssl.client.auth": "required",
            f"{name}.{listener}.ssl.keystore.type": "PEM",
            f"{name}.{listener}.ssl.keystore.location": str(server),
            f"{name}.{listener}.ssl.truststore.type": "PEM",
            f"{name}.{listener}.ssl.truststore.location": str(authority),
        }
    return properties


@pytest.fixture(scope="module")
def secured(
    stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[Secured]:
    """The node, with the user ``watch`` for both mechanisms."""
    directory = tmp_path_factory.mktemp("client-properties")
    ports = Ports()
    own = Addresses(ports.reserve(), ports.reserve())
    bus, quorum = ports.reserve(), ports.reserve()
    properties = listeners(own, bus, quorum, certificates.server, certificates.ca)
    spec = ClusterSpec([NodeSpec(1, RELEASE, properties=properties)])
    cluster = Cluster(
        spec, directory / "cluster", cache=stack_cache, temporary=True, addresses={1: own}
    )
    with started(cluster):
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        upsertion = UserScramCredentialUpsertion("watch", info, SECRET.encode())
        for future in admin.alter_user_scram_credentials([upsertion]).values():
            future.result()
        yield Secured(cluster, f"{LOOPBACK}:{bus}", f"{LOOPBACK}:{quorum}", directory)
    ports.release()
    shutil.rmtree(directory / "cluster", ignore_errors=True)


def stores_of_java(directory: Path, certificates: Certificates) -> str:
    """A JKS trust store by ``keytool``, a PKCS12 key store, and SASL PLAIN."""
    trust, keys = directory / "trust.jks", directory / "keys.p12"
    trust.unlink(missing_ok=True)
    keytool = [str(java()), "-m", "java.base/sun.security.tools.keytool.Main", "-importcert"]
    keytool += ["-noprompt", "-alias", "ca", "-file", str(certificates.ca), "-keystore", str(trust)]
    keytool += ["-storetype", "JKS", "-storepass", STORE_SECRET]
    subprocess.run(keytool, check=True, capture_output=True, timeout=240)
    text = certificates.client.read_bytes()
    key = serialization.load_pem_private_key(text, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey)
    own, *issuers = x509.load_pem_x509_certificates(text)
    store = pkcs12.serialize_key_and_certificates(
        b"client",
        key,
        own,
        issuers,
        serialization.BestAvailableEncryption(STORE_SECRET.encode()),
    )
    write_private(keys, store)
    return (
        "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
        f"sasl.jaas.config={PLAIN} {CREDENTIALS}\n"
        f"ssl.truststore.location={trust}\nssl.truststore.password={STORE_SECRET}\n"
        f"ssl.keystore.type=PKCS12\nssl.keystore.location={keys}\n"
        f"ssl.keystore.password={STORE_SECRET}\nssl.endpoint.identification.algorithm=https\n"
        + HARMLESS
    )


def pem_in_the_properties(_: Path, certificates: Certificates) -> str:
    """A PEM trust store, the client's certificate in the file itself, and SASL SCRAM."""
    key, chain = certificates.client.read_text().split("-----END PRIVATE KEY-----\n")
    key += "-----END PRIVATE KEY-----\n"
    inline = {
        name: "\\\n".join(f"{line}\\n" for line in text.splitlines())
        for name, text in (("key", key), ("certificate.chain", chain))
    }
    return (
        "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
        f"sasl.jaas.config={SCRAM} {CREDENTIALS}\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={certificates.ca}\n"
        f"ssl.keystore.type=PEM\nssl.keystore.key={inline['key']}\n"
        f"ssl.keystore.certificate.chain={inline['certificate.chain']}\n"
        "ssl.enabled.protocols=TLSv1.2,TLSv1.3\n" + HARMLESS
    )


@pytest.fixture(scope="module", params=[stores_of_java, pem_in_the_properties])
def login(request: pytest.FixtureRequest, secured: Secured, certificates: Certificates) -> Path:
    """The file."""
    file = secured.directory / f"{request.param.__name__}.properties"
    write_private(file, request.param(secured.directory, certificates))
    return file


def librdkafka_spelling(certificates: Certificates) -> dict[str, str]:
    """The same login in librdkafka's names, certificate and key in one file."""
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "watch",
        "sasl.password": SECRET,
        "ssl.ca.location": str(certificates.ca),
        "ssl.certificate.location": str(certificates.client),
    }


@pytest.fixture(scope="module")
def tools(stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaTools]:
    """Kafka's own tools, in one JVM."""
    with kafka_tools(RELEASE, stack_cache, tmp_path_factory.mktemp("tools")) as running:
        yield running


def kafka_describes(where: tuple[str, ...], file: Path, tools: KafkaTools) -> str:
    """The output of Kafka's own tool with a properties file."""
    done = tools(FEATURES, *where, "--command-config", str(file), "describe")
    assert done.code == 0, done.out + done.err
    return done.out


def ours(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of featurewatch, to its end; a JVM in it compiles little."""
    command = [sys.executable, "-m", "featurewatch", *arguments]
    env = {**os.environ, "JDK_JAVA_OPTIONS": BRIEF_JVM}
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=540, env=env
        )
    except subprocess.TimeoutExpired as error:
        pytest.fail(f"{command} runs for too long: {error.stderr!r}")


def without_epoch(text: str) -> str:
    """A description without the offset of the log, which grows."""
    return re.sub(r"Epoch: \d+", "", text)


def test_what_serves_kafkas_tool_serves_the_features_commands(
    secured: Secured, login: Path, tools: KafkaTools
) -> None:
    """Both describe the same features, by broker and by controller."""
    for where in (("--bootstrap-server", secured.bus), ("--bootstrap-controller", secured.quorum)):
        theirs = kafka_describes(where, login, tools)
        result = ours("features", *where, "--command-config", str(login), "describe")
        assert (result.returncode, result.stderr) == (0, "")
        assert without_epoch(result.stdout) == without_epoch(theirs)


@pytest.mark.parametrize("spelling", ["java's stores", "pem in it", "librdkafka's"])
def test_what_spark_is_given_serves_kafkas_own_client(
    secured: Secured, certificates: Certificates, tools: KafkaTools, spelling: str
) -> None:
    """Each spelling becomes properties with which Java's client logs in."""
    file = secured.directory / "given.properties"
    if spelling == "librdkafka's":
        properties = librdkafka_spelling(certificates)
    else:
        make = stores_of_java if spelling == "java's stores" else pem_in_the_properties
        write_private(file, make(secured.directory, certificates))
        properties = dict(read_client_config(file).properties)
    lines = (
        f"{name}={value.replace(chr(92), chr(92) * 2).replace(chr(10), chr(92) + 'n')}\n"
        for name, value in java_properties(properties).items()
    )
    write_private(file, "".join(lines))
    where = ("--bootstrap-server", secured.bus)
    assert "Feature: metadata.version" in kafka_describes(where, file, tools)


@pytest.mark.parametrize(
    "login",
    [stores_of_java, pytest.param(pem_in_the_properties, marks=pytest.mark.nightly)],
    indirect=True,
)
def test_it_serves_source_worker_and_readers(secured: Secured, login: Path) -> None:
    """watch and worker become ready, and state shows what they published."""
    configuration = str(secured.configuration(login))
    processes = [
        Process(f"{name}-{login.stem}", [name, "--config", configuration], secured.directory)
        for name in ("worker", "watch")
    ]
    try:
        for process in processes:
            process.start()
        wait_ready(processes)
        id_, state = secured.cluster.cluster_id, ("state", "--config", configuration)
        assert eventually(lambda: id_ in ours(*state).stdout, 60), processes[0].log.read_text()
        for process in processes:
            assert process.ended is None
    finally:
        for process in processes:
            process.kill()


@pytest.mark.nightly
def test_it_serves_the_pipeline(
    secured: Secured, certificates: Certificates, tmp_path: Path
) -> None:
    """Messages of a topic reach the lake, through Spark's own client."""
    login = tmp_path / "login.properties"
    write_private(login, pem_in_the_properties(secured.directory, certificates))
    configuration = secured.configuration(login)
    bus = load(configuration).bus_settings()
    ensure_topics(bus)
    producer = Producer(bus.client())
    producer.produce(bus.topic(METADATA_LOG), b"{}", b"a-cluster")
    assert producer.flush(30) == 0
    lake = tmp_path / "lake"
    result = ours("pipeline", "run", "--once", "--config", str(configuration), "--lake", str(lake))
    assert result.returncode == 0, result.stderr[-3000:]
    log = (lake / "bronze" / "messages" / "_delta_log").glob("*.json")
    commits = "".join(file.read_text() for file in log).replace("\\", "")
    assert commits.count('"numRecords":1') == 1
    assert SECRET not in result.stderr
