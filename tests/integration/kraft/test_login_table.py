"""Each login on each way of connecting: the table that docs/explanation/security.md shows."""

import asyncio
import contextlib
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from faust.transport.drivers.aiokafka import credentials_to_aiokafka_auth

from featurewatch.agents.app import _credentials
from featurewatch.cli.config.settings import ClusterSection
from featurewatch.cli.runtime.cluster_image import read_image
from featurewatch.common.private_files import write_private
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.server_properties import Addresses
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec
from featurewatch.stack.process.ports import LOOPBACK, Ports
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.tables.image.cluster import Authority
from tests.conformance.kafka_tools import OurCommand
from tests.integration.kraft.support import create_topics
from tests.kafka.login_front import Front
from tests.kerberos import KAFKA, Kdc, client_properties, java_entry, require_java, running_kdc
from tests.msk import KEY_ID, aws_environment, check_oauth_message, check_payload
from tests.msk import SECRET as AWS_SECRET
from tests.oauth_node import CLASSES
from tests.oidc import CLIENT_ID, SECRET, Provider, respond, running_provider
from tests.paths import ROOT
from tests.process_logs import started

pytestmark = [pytest.mark.stack, pytest.mark.nightly]

RELEASE = "4.3.0"
REGION = "eu-central-1"
PASSWORD = "p4ss-w0rd"  # noqa: S105 - of tests
TOPIC = "login-table"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
IAM = "software.amazon.msk.auth.iam"


@dataclass(frozen=True)
class LoginNode:
    """A running node; broker's and controller's listeners by the kind of login."""

    cluster: Cluster
    directory: Path
    provider: Provider
    kdc: Kdc
    listeners: dict[str, tuple[str, str]]


@pytest.fixture(scope="module")
def node(stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoginNode]:
    """A node that takes every login of the table."""
    directory = tmp_path_factory.mktemp("logins")
    ports = Ports()
    own = Addresses(ports.reserve(), ports.reserve())
    names = ("sasl", "ssl", "iam")
    inside = {name: (ports.reserve(), ports.reserve()) for name in names}
    fronts = (ports.reserve(), ports.reserve())
    with contextlib.ExitStack() as stack:
        require_java()
        kdc = stack.enter_context(running_kdc(directory / "kdc"))
        provider = stack.enter_context(running_provider())
        provider.lifetime_s = 600
        provider.answer = granted
        keys = directory / "keys.json"
        provider.write_keys(keys)
        _certificates(directory)
        brokers = {
            name: f"{name.upper()}://{LOOPBACK}:{port}" for name, (port, _) in inside.items()
        }
        advertised = {**brokers, "iam": f"IAM://{LOOPBACK}:{fronts[0]}"}
        controllers = [f"Q{name.upper()}://{LOOPBACK}:{inside[name][1]}" for name in names]
        plain = f"PLAINTEXT://{LOOPBACK}:{own.broker}"
        properties = {
            "listeners": ",".join(
                (
                    plain,
                    *brokers.values(),
                    f"CONTROLLER://{LOOPBACK}:{own.controller}",
                    *controllers,
                )
            ),
            "advertised.listeners": ",".join((plain, *advertised.values())),
            "controller.listener.names": "CONTROLLER,QSASL,QSSL,QIAM",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512,OAUTHBEARER,GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
            "sasl.oauthbearer.expected.audience": "kafka",
            "sasl.oauthbearer.expected.issuer": provider.issuer,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(directory / "server.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(directory / "ca.pem"),
            "ssl.client.auth": "required",
        }
        for name in ("sasl", "qsasl"):
            prefix = f"listener.name.{name}"
            properties |= {
                f"{prefix}.plain.sasl.jaas.config": f'{PLAIN} user_watch="{PASSWORD}";',
                f"{prefix}.scram-sha-512.sasl.jaas.config": f"{SCRAM};",
                f"{prefix}.gssapi.sasl.jaas.config": f"{java_entry(kdc.keytab(KAFKA), KAFKA)};",
                f"{prefix}.oauthbearer.sasl.jaas.config": (
                    f"{CLASSES}.OAuthBearerLoginModule required;"
                ),
                f"{prefix}.oauthbearer.sasl.server.callback.handler.class": (
                    f"{CLASSES}.OAuthBearerValidatorCallbackHandler"
                ),
            }
        shared = {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
            "IAM:PLAINTEXT,QIAM:PLAINTEXT,SASL:SASL_PLAINTEXT,QSASL:SASL_PLAINTEXT,SSL:SSL,QSSL:SSL"
        }
        scram = f"SCRAM-SHA-512=[name=watch,password={PASSWORD}]"
        spec = ClusterSpec(
            [NodeSpec(1, RELEASE, properties=properties)],
            properties=shared,
            format_arguments=("--add-scram", scram),
        )
        cluster = Cluster(
            spec, directory / "cluster", cache=stack_cache, temporary=True, addresses={1: own}
        )
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys.as_uri()}"
        allowed += f" -Dorg.apache.kafka.sasl.oauthbearer.allowed.files={keys}"
        allowed += f" -Djava.security.krb5.conf={kdc.config}"
        patch.setenv("JAVA_TOOL_OPTIONS", allowed)
        stack.enter_context(started(cluster))
        stack.enter_context(_msk_fronts(dict(zip(fronts, inside["iam"], strict=True))))
        asyncio.run(create_topics(cluster, [TOPIC]))
        addresses = {
            name: (f"{LOOPBACK}:{broker}", f"{LOOPBACK}:{controller}")
            for name, (broker, controller) in {**inside, "iam": fronts}.items()
        }
        yield LoginNode(cluster, directory, provider, kdc, addresses)
    ports.release()


def granted(provider: Provider, request: object) -> None:
    """A token for whoever asks: by a secret or by an assertion."""
    respond(request, 200, f'{{"access_token": "{provider.token()}"}}')  # type: ignore[arg-type]


@contextlib.contextmanager
def _msk_fronts(ports: dict[int, int]) -> Iterator[None]:
    """What brokers of MSK do before a node: they check signatures of both mechanisms."""
    secrets = {KEY_ID: AWS_SECRET}
    front = Front(
        None,
        "AWS_MSK_IAM",
        checks={
            "AWS_MSK_IAM": lambda message: check_payload(message, LOOPBACK, secrets),
            "OAUTHBEARER": lambda message: check_oauth_message(message, REGION, secrets),
        },
    )
    ready, loop = threading.Event(), asyncio.new_event_loop()

    async def start() -> None:
        for own_port, port in ports.items():
            await front.start(port, own_port)
        ready.set()

    def serve() -> None:
        loop.run_until_complete(start())
        loop.run_forever()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    assert ready.wait(10)
    yield
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)


def _certificates(directory: Path) -> None:
    """An authority, and keys in PKCS #8 of a server and a client."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(directory / "ca.pem")
    for name in ("server", "client"):
        issued = authority.issue_cert(LOOPBACK)
        key = load_pem_private_key(issued.private_key_pem.bytes(), None)
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        chain = b"".join(part.bytes() for part in issued.cert_chain_pems)
        write_private(directory / f"{name}.pem", pem + chain)


# -- the rows --------------------------------------------------------------------------------------


def _sasl(mechanism: str, **others: str) -> dict[str, str]:
    named = {name.replace("__", "."): value for name, value in others.items()}
    return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, **named}


def logins(node: LoginNode) -> dict[str, tuple[str, dict[str, str]]]:
    """By the name of a row: the listeners for it, and the client's properties."""
    user = {"sasl.username": "watch", "sasl.password": PASSWORD}
    url = {"sasl.oauthbearer.token.endpoint.url": node.provider.url}
    token = node.directory / "token"
    token.write_text(node.provider.token())
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    write_private(
        node.directory / "key.pem",
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )
    assertion = "sasl.oauthbearer.assertion"
    signed = {
        **url,
        f"{assertion}.private.key.file": str(node.directory / "key.pem"),
        f"{assertion}.claim.iss": CLIENT_ID,
    }
    secret = {
        "sasl.oauthbearer.client.credentials.client.id": CLIENT_ID,
        "sasl.oauthbearer.client.credentials.client.secret": SECRET,
    }
    bearer = {"sasl.oauthbearer.jwt.retriever.class": f"{CLASSES}.JwtBearerJwtRetriever"}
    program = f"{sys.executable} -c 'print(open(\"{token}\").read())'"
    oauth = _sasl("OAUTHBEARER")
    handler = f"{IAM}.IAMOAuthBearerLoginCallbackHandler"
    certificates = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(node.directory / "ca.pem"),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(node.directory / "client.pem"),
    }
    return {
        "PLAIN": ("sasl", _sasl("PLAIN") | user),
        "SCRAM-SHA-512": ("sasl", _sasl("SCRAM-SHA-512") | user),
        "client certificate (mTLS)": ("ssl", certificates),
        "OAUTHBEARER, client secret": ("sasl", oauth | url | secret),
        "OAUTHBEARER, client assertion": ("sasl", oauth | signed),
        "OAUTHBEARER, JWT bearer": ("sasl", oauth | signed | bearer),
        "OAUTHBEARER, token file": (
            "sasl",
            oauth | {"sasl.oauthbearer.token.endpoint.url": token.as_uri()},
        ),
        "OAUTHBEARER, token command": ("sasl", oauth | {"sasl.oauthbearer.token.command": program}),
        "OAUTHBEARER, MSK's signed token": (
            "iam",
            oauth | {"sasl.login.callback.handler.class": handler},
        ),
        "AWS_MSK_IAM": ("iam", _sasl("AWS_MSK_IAM")),
        "GSSAPI": ("sasl", client_properties(node.kdc)),
    }


# -- the columns -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Client:
    """A login in use: the addresses for it, its properties, also as a file, and our commands."""

    broker: str
    controller: str
    properties: dict[str, str]
    file: Path
    command: OurCommand

    @property
    def bus(self) -> BusSettings:
        """The node as a bus."""
        return BusSettings(self.broker, self.properties)

    def run(self, *arguments: str) -> None:
        """Runs a command at the broker."""
        connected = ("--bootstrap-server", self.broker, "--command-config", str(self.file))
        result = self.command(*arguments, *connected)
        assert result.code == 0, result
        for hidden in (SECRET, PASSWORD, AWS_SECRET):
            assert hidden not in result.out + result.err


def follow_log(client: Client) -> None:
    """Fetch."""
    section = ClusterSection(controllers=client.controller, command_config=client.file)
    section = section.model_copy(update={"servers": client.broker})
    assert read_image(section).authority is Authority.LOG


def poll_nodes(client: Client) -> None:
    """ApiVersions."""
    section = ClusterSection(servers=client.broker, command_config=client.file)
    assert read_image(section).authority is Authority.ANSWERS


def consume(client: Client) -> None:
    """librdkafka's consumer."""
    consumer = Consumer(client.bus.client(group_id=f"g-{uuid.uuid4().hex[:6]}"))
    try:
        assert TOPIC in consumer.list_topics(timeout=20).topics
    finally:
        consumer.close()


def produce(client: Client) -> None:
    """librdkafka's producer."""
    producer = Producer(client.bus.client())
    errors: list[object] = []
    producer.produce(TOPIC, b"m", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(20) == 0
    assert errors == [None]


def work(client: Client) -> None:
    """aiokafka, as Faust's transport gives it its credentials."""

    async def send() -> None:
        login = credentials_to_aiokafka_auth(_credentials(client.bus), None)
        producer = AIOKafkaProducer(bootstrap_servers=client.broker, **login)
        await producer.start()
        await asyncio.wait_for(producer.send_and_wait(TOPIC, b"m"), 20)
        await producer.stop()

    asyncio.run(send())


WAYS: dict[str, Callable[[Client], None]] = {
    "metadata log": follow_log,
    "ApiVersions": poll_nodes,
    "features": lambda client: client.run("features", "describe"),
    "topics": lambda client: client.run("topics", "list"),
    "reassign": lambda client: client.run("reassign", "list"),
    "elect": lambda client: client.run("elect", "preferred", "--all-topic-partitions", "--yes"),
    "quorum": lambda client: client.run("quorum", "describe", "--status"),
    "cluster": lambda client: client.run("cluster", "metadata"),
    "bus: consumer": consume,
    "bus: producer": produce,
    "worker": work,
}


def connects(
    connect: Callable[[Client], None], client: Client, label: str, reasons: list[str]
) -> bool:
    """Whether a way works; on a machine that is busy, a deadline of two seconds may pass."""
    for _ in range(3):
        try:
            connect(client)
        except Exception as error:
            reasons.append(f"{label}: {error!r:.300}")
        else:
            return True
    return False


def test_the_table_of_logins_is_what_works(
    node: LoginNode,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    """Every cell is tried; no output or log has a secret in it."""
    keys = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": AWS_SECRET}
    aws_environment(monkeypatch, tmp_path, **keys, AWS_REGION=REGION)
    monkeypatch.setenv("KRB5_CONFIG", str(node.kdc.config))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'tickets'}")
    command = OurCommand(monkeypatch, capsys, group=None)
    lines = [f"| login | {' | '.join(WAYS)} |", "|---" * (len(WAYS) + 1) + "|"]
    reasons: list[str] = []
    for name, (listener, properties) in logins(node).items():
        broker, controller = node.listeners[listener]
        file = tmp_path / "client.properties"
        write_private(file, "".join(f"{key}={value}\n" for key, value in properties.items()))
        client = Client(broker, controller, properties, file, command)
        cells = []
        for way, connect in WAYS.items():
            cells.append("yes" if connects(connect, client, f"{name}, {way}", reasons) else "no")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    for hidden in (SECRET, PASSWORD, AWS_SECRET):
        assert hidden not in caplog.text
    page = (ROOT / "docs" / "explanation" / "security.md").read_text()
    table = "\n".join(lines)
    assert table in page, f"{table}\n{reasons}"
