"""Starts, ends and describes a stack for the commands of the group ``stack``."""

import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from featurewatch.cli.command_line import Exit
from featurewatch.cli.commands.stack.stack_options import StackOptions
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.output.terminal import print_line, print_lines, print_note
from featurewatch.stack import client, stack_file
from featurewatch.stack.errors import StackError

_SERVERS: Final = ("zookeeper_servers", "reference_servers", "controller_servers", "nodes")
"""The keys of a stack's status under which its servers are, by kind."""


def up(directory: Path | None, options: StackOptions, *, foreground: bool, as_json: bool) -> None:
    """Starts a stack that ``wanted`` describes, or resumes the one in the directory."""
    root = _directory(directory)
    if stack_file.read(root) is None:
        options.described().write(root)
    elif options != StackOptions():
        raise UsageError(
            f"{root} holds a stack already: resume it without options, choose another "
            "--directory, or remove it: featurewatch stack down --remove"
        )
    else:
        _refuse_if_running(root)
    if foreground:
        _stay(root, as_json)
        return
    _show(client.launch(root), as_json, _describe_up)


def down(directory: Path | None, *, remove: bool) -> None:
    """Stops the stack and, if wanted, removes its data; exit code 3 if it did not run."""
    root = _directory(directory)
    was_running = True
    try:
        client.send_request(root, "down")
        client.wait_until_gone(root)
    except client.NotRunningError as error:
        was_running = False
        if not remove:
            print_note(str(error))
            raise Exit(ExitCode.NO) from error
    if remove:
        if stack_file.read(root) is None:
            raise StackError(f"{root} holds no stack; nothing was removed")
        shutil.rmtree(root)
    print_note(("stopped" if was_running else "was not running") + (", removed" if remove else ""))


def status(directory: Path | None, *, as_json: bool) -> None:
    """Prints the status; exit code 3 if the stack does not run or a node is not ready."""
    root = _directory(directory)
    try:
        answer = client.send_request(root, "status")
    except client.NotRunningError as error:
        if as_json:
            none = {"directory": str(root), "running": False}
            print_line(json.dumps(none | {kind: [] for kind in _SERVERS}))
        print_note(str(error))
        raise Exit(ExitCode.NO) from error
    _show(answer | {"running": True}, as_json, _describe_status)
    if not all(server["ready"] for server in _servers(answer)):
        raise Exit(ExitCode.NO)


def request_of_node(
    directory: Path | None, request: str, *, as_json: bool, **arguments: object
) -> None:
    """Sends a request about one node to the stack and prints the node."""
    answer = client.send_request(_directory(directory), request, **arguments)
    _show(answer, as_json, _describe_node)


def _directory(given: Path | None) -> Path:
    return given.expanduser().absolute() if given is not None else client.default_directory()


def _refuse_if_running(root: Path) -> None:
    try:
        client.send_request(root, "status")
    except client.NotRunningError:
        return
    raise StackError(f"the stack in {root} runs already; see: featurewatch stack status")


def _stay(root: Path, as_json: bool) -> None:
    from featurewatch.stack.supervisor import Supervisor

    supervisor = Supervisor(root)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: supervisor.interrupt())
    with supervisor.running():
        _show(supervisor.status(), as_json, _describe_up)
        supervisor.serve()


def _show(answer: dict[str, Any], as_json: bool, describe: Callable[[dict[str, Any]], str]) -> None:
    print_lines([json.dumps(answer)] if as_json else describe(answer).splitlines())


def _describe_up(answer: dict[str, Any]) -> str:
    directory = answer["directory"]
    return (
        f"{_describe_status(answer)}\nend it      featurewatch stack down --directory {directory}"
    )


def _describe_status(answer: dict[str, Any]) -> str:
    lines = [f"directory   {answer['directory']}"]
    if answer["nodes"]:
        lines.append(f"cluster     {answer['cluster_id']}")
        if answer["bootstrap_servers"]:
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
    roles = "+".join(node["roles"]) + (" of the reference" if node.get("is_reference") else "")
    return f"node {node['id']:<6} {node['release']:<7} {roles}, {state}"
