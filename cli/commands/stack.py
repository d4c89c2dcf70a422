"""``featurewatch stack``: real Kafka and ZooKeeper on this machine."""

import json
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.deploy.errors import StackError
from featurewatch.deploy.kafka.specs import (
    KAFKA_WITH_ZOOKEEPER,
    NEWEST_TESTED,
    combined,
    zookeeper_mode,
)
from featurewatch.deploy.stack import client as remote
from featurewatch.deploy.stack import stack_file as stackfile
from featurewatch.deploy.stack.stack_file import ReferenceFile, StackFile, ZookeeperFile
from featurewatch.deploy.zookeeper.specs import EnsembleSpec

CHROOT = "/kafka"
"""Below it stands the cluster of a stack with ZooKeeper."""

EXAMPLE_FEATURES = (
    "group_coordinator=1-2,transaction_coordinator=1-5,consumer_offsets_topic_schema=1-1"
)
"""What brokers support in the examples of KIP-584."""

app = typer.Typer(help="Real Kafka and ZooKeeper on this machine.", no_args_is_help=True)
node_app = typer.Typer(help="Stop, kill and start one node of a stack.", no_args_is_help=True)
app.add_typer(node_app, name="node")

Directory = Annotated[
    Path | None,
    typer.Option("--directory", "-d", help="The stack's directory.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
NodeId = Annotated[str, typer.Argument(help="The node's id, or zookeeper-1, reference-1, …")]

_SERVERS = ("zookeeper_servers", "reference_servers", "nodes")
"""Where a stack's status has the servers of each kind."""


@app.command()
def up(
    nodes: Annotated[int | None, typer.Option(help="How many nodes [3].", min=1)] = None,
    release: Annotated[str | None, typer.Option(help=f"Of all nodes [{NEWEST_TESTED}].")] = None,
    releases: Annotated[str | None, typer.Option(help="Node by node: 3.9.1,4.3.0,…")] = None,
    metadata_version: Annotated[str | None, typer.Option(help="At format: 3.7-IV4, 3.9, …")] = None,
    light_brokers: Annotated[
        int | None, typer.Option(help="Registrations without a process.", min=0)
    ] = None,
    zookeeper: Annotated[
        int | None, typer.Option(help="A ZooKeeper ensemble of 1 or 3 servers instead.", min=1)
    ] = None,
    zookeeper_kafka: Annotated[
        int | None, typer.Option(help="With brokers in ZooKeeper mode [none].", min=1)
    ] = None,
    reference_brokers: Annotated[
        int | None, typer.Option(help="With a reference cluster of KIP-584 [none].", min=1)
    ] = None,
    reference_features: Annotated[
        str | None, typer.Option(help="Its features: name=min-max,… [the KIP's example].")
    ] = None,
    directory: Directory = None,
    foreground: Annotated[bool, typer.Option(help="Stay, and end with Ctrl-C.")] = False,
    as_json: Json = False,
) -> None:
    """Start a stack and leave it running; a directory that holds one is taken up as it was."""
    where = _directory(directory)
    wanted = _StackOptions(
        nodes,
        release,
        releases,
        metadata_version,
        light_brokers,
        zookeeper,
        zookeeper_kafka,
        reference_brokers,
        reference_features,
    )
    if stackfile.read(where) is None:
        wanted.described().write(where)
    elif wanted != _StackOptions():
        raise UsageError(
            f"{where} holds a stack already: take it up without options, choose another "
            "--directory, or remove it: featurewatch stack down --remove"
        )
    else:
        _refuse_if_running(where)
    if foreground:
        _stay(where, as_json)
        return
    status = remote.launch(where)
    _show(status, as_json, _describe_up)


@app.command()
def down(
    directory: Directory = None,
    remove: Annotated[bool, typer.Option("--remove", help="Delete the stack's data too.")] = False,
) -> None:
    """Stop a stack; its data is kept unless it shall be removed."""
    where = _directory(directory)
    ran = True
    try:
        remote.send_request(where, "down")
        remote.wait_until_gone(where)
    except remote.NotRunningError as error:
        ran = False
        if not remove:
            _say(str(error))
            raise typer.Exit(ExitCode.NO) from error
    if remove:
        if stackfile.read(where) is None:
            raise StackError(f"{where} holds no stack; nothing was removed")
        shutil.rmtree(where)
    _say(("stopped" if ran else "was not running") + (", removed" if remove else ""))


@app.command()
def status(directory: Directory = None, as_json: Json = False) -> None:
    """How a stack does; exit code 3 if it does not run or a node is not ready."""
    where = _directory(directory)
    try:
        answer = remote.send_request(where, "status")
    except remote.NotRunningError as error:
        if as_json:
            none = {"directory": str(where), "running": False}
            print(json.dumps(none | {kind: [] for kind in _SERVERS}))
        _say(str(error))
        raise typer.Exit(ExitCode.NO) from error
    _show(answer | {"running": True}, as_json, _describe_status)
    if not all(server["ready"] for server in _servers(answer)):
        raise typer.Exit(ExitCode.NO)


@node_app.command()
def stop(node: NodeId, directory: Directory = None, as_json: Json = False) -> None:
    """Shut a node down (SIGTERM)."""
    _show(remote.send_request(_directory(directory), "stop", node=node), as_json, _describe_node)


@node_app.command()
def kill(node: NodeId, directory: Directory = None, as_json: Json = False) -> None:
    """Kill a node (SIGKILL)."""
    _show(remote.send_request(_directory(directory), "kill", node=node), as_json, _describe_node)


@node_app.command()
def start(
    node: NodeId,
    release: Annotated[str | None, typer.Option(help="On another release than before.")] = None,
    directory: Directory = None,
    wait: Annotated[bool, typer.Option(help="Until the node is ready.")] = True,
    as_json: Json = False,
) -> None:
    """Start a node again, with its directory kept."""
    where = _directory(directory)
    _show(
        remote.send_request(where, "start", node=node, release=release, wait=wait),
        as_json,
        _describe_node,
    )


def _directory(given: Path | None) -> Path:
    return given.expanduser().absolute() if given is not None else remote.default_directory()


def _refuse_if_running(where: Path) -> None:
    try:
        remote.send_request(where, "status")
    except remote.NotRunningError:
        return
    raise StackError(f"the stack in {where} runs already; see: featurewatch stack status")


@dataclass(frozen=True)
class _StackOptions:
    """The options of ``stack up`` that say what a new stack shall be."""

    nodes: int | None = None
    release: str | None = None
    releases: str | None = None
    metadata_version: str | None = None
    light_brokers: int | None = None
    zookeeper: int | None = None
    zookeeper_kafka: int | None = None
    reference_brokers: int | None = None
    reference_features: str | None = None

    def described(self) -> StackFile:
        """The stack.

        Raises:
            UsageError: if there can be none like it.
        """
        try:
            if (self.zookeeper, self.zookeeper_kafka, self._reference()) != (None, None, None):
                return self._zookeeper_mode()
            return self._kraft()
        except StackError as error:
            raise UsageError(str(error)) from error

    def _zookeeper_mode(self) -> StackFile:
        kraft = (self.nodes, self.releases, self.metadata_version, self.light_brokers)
        if any(value is not None for value in kraft):
            raise UsageError(
                "a stack with ZooKeeper takes --zookeeper-kafka with --release, and "
                "--reference-brokers; "
                "for KRaft nodes start another one in its own --directory"
            )
        if self.release is not None and self.zookeeper_kafka is None:
            raise UsageError("--release is Kafka's; name how many brokers: --zookeeper-kafka 3")
        servers = EnsembleSpec(self.zookeeper or 1).servers
        spec = self.zookeeper_kafka and zookeeper_mode(
            self.zookeeper_kafka, CHROOT, self.release or KAFKA_WITH_ZOOKEEPER
        )
        return StackFile(spec or None, ZookeeperFile(servers), self._reference())

    def _reference(self) -> ReferenceFile | None:
        if self.reference_brokers is None:
            if self.reference_features is not None:
                raise UsageError("--reference-features are of --reference-brokers: give both")
            return None
        features = (self.reference_features or EXAMPLE_FEATURES).split(",")
        return ReferenceFile(self.reference_brokers, ("--features", *map(str.strip, features)))

    def _kraft(self) -> StackFile:
        if self.releases is not None and (self.nodes is not None or self.release is not None):
            raise UsageError("--releases names every node; leave out --nodes and --release")
        if self.releases is not None:
            each = [word.strip() for word in self.releases.split(",")]
        else:
            each = [self.release or NEWEST_TESTED] * (self.nodes or 3)
        light = self.light_brokers or 0
        # Heartbeats of light brokers go out at about 2,000 a second: more need longer sessions.
        session_ms = max(6_000, 10 * light)
        properties = {"broker.session.timeout.ms": str(session_ms)} if light else {}
        spec = combined(each, self.metadata_version, properties)
        return StackFile(spec, light_brokers=light)


def _stay(where: Path, as_json: bool) -> None:
    from featurewatch.deploy.stack.supervisor import Supervisor

    supervisor = Supervisor(where)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: supervisor.interrupt())
    with supervisor.running():
        _show(supervisor.status(), as_json, _describe_up)
        supervisor.serve()


def _show(answer: dict[str, Any], as_json: bool, describe: Callable[[dict[str, Any]], str]) -> None:
    print(json.dumps(answer) if as_json else describe(answer), flush=True)


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def _describe_up(answer: dict[str, Any]) -> str:
    where = answer["directory"]
    return f"{_describe_status(answer)}\nend it      featurewatch stack down --directory {where}"


def _describe_status(answer: dict[str, Any]) -> str:
    lines = [f"directory   {answer['directory']}"]
    if answer["nodes"]:
        lines.append(f"cluster     {answer['cluster_id']}")
        lines.append(f"bootstrap   {answer['bootstrap_servers']}")
    if answer["controllers"]:
        lines.append(f"controllers {answer['controllers']}")
    if answer["light_brokers"]:
        lines.append(f"light       {answer['light_brokers']} brokers")
    if answer["zookeeper"]:
        lines.append(f"zookeeper   {answer['zookeeper']}")
    if answer["reference"]:
        brokers = answer["reference_brokers"]
        lines.append(f"reference   {answer['reference']}, {brokers} brokers")
    return "\n".join([*lines, *map(_describe_node, _servers(answer))])


def _servers(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [server for kind in _SERVERS for server in answer[kind]]


def _describe_node(node: dict[str, Any]) -> str:
    state = "ready" if node["ready"] else f"not ready: {node['missing']}"
    if "mode" in node:
        return f"{node['id']:<11} {node['address']:<15} {node['mode']}, {state}"
    return f"node {node['id']:<6} {node['release']:<7} {'+'.join(node['roles'])}, {state}"
