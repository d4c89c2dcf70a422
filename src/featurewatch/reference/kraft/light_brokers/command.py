"""The command that runs light brokers.

``python -m featurewatch.reference.kraft light-brokers`` runs it:
each change is a line on stdout, ``listening HOST:PORT``, ``running N of M``, ``level L`` and
``ended ID REASON``. It ends with 0 at Ctrl-C or SIGTERM, after all brokers were shut down, and with
1 when all of them have ended because of an error.
"""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from typing import Any, Final

from featurewatch.controller.kraft import UnknownReleaseError, release_of
from featurewatch.reference.kraft.arguments import begin, voter_argument
from featurewatch.reference.kraft.light_brokers.host import LightBrokerHost, light_settings
from featurewatch.reference.kraft.machines.broker.light_brokers import (
    BrokerBecame,
    BrokerEnded,
    LightEffect,
)
from featurewatch.reference.kraft.machines.broker.loader import ImagePublished
from featurewatch.reference.kraft.machines.broker.settings import DEFAULT_RELEASE
from featurewatch.reference.kraft.machines.controller.settings import Form
from featurewatch.reference.kraft.machines.replicas import VoterSet

MAX_BROKERS: Final = 10_000


def main(arguments: Sequence[str]) -> int:
    """Runs the command; returns the exit code."""
    options = _parser().parse_args(arguments)
    begin()
    try:
        release = release_of(options.release).name
    except UnknownReleaseError as error:
        sys.stderr.write(f"--release: {error}\n")
        return 2
    if not 0 < options.count <= MAX_BROKERS:
        sys.stderr.write(f"--count: give a number from 1 to {MAX_BROKERS}\n")
        return 2
    try:
        return asyncio.run(_run(options, release))
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 1


async def _run(options: argparse.Namespace, release: str) -> int:
    brokers = light_settings(
        options.first_id, options.count, options.cluster_id, options.form, release
    )
    told: dict[str, Any] = {"level": None}
    changed = asyncio.Event()

    def watch(effect: LightEffect) -> None:
        match effect:
            case BrokerBecame():
                changed.set()
            case BrokerEnded(broker_id, reason, _):
                _print(f"ended {broker_id} {reason}")
                changed.set()
            case ImagePublished(image) if image.level != told["level"]:
                told["level"] = image.level
                _print(f"level {image.level}")
            case _:
                pass

    host = LightBrokerHost(
        VoterSet.of(options.voters), brokers, (options.host, options.port), watch
    )
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await host.start()
    _print("listening {}:{}".format(*host.address))
    waiting = asyncio.ensure_future(stopped.wait())
    count = -1
    while not waiting.done() and not host.halted.done() and host.machine.states:
        if host.running != count:
            count = host.running
            _print(f"running {count} of {len(brokers)}")
        changed.clear()
        change = asyncio.ensure_future(changed.wait())
        ends: list[asyncio.Future[Any]] = [waiting, host.halted, change]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        change.cancel()
    has_failed = host.halted.done() or not host.machine.states
    await host.close()
    waiting.cancel()
    if host.halted.done():
        sys.stderr.write(f"{host.halted.result()}\n")
    return int(has_failed)


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m featurewatch.reference.kraft light-brokers",
        description="Runs brokers that register and follow the metadata, and serve no data.",
    )
    add = parser.add_argument
    add("--cluster-id", required=True, help="id of the cluster")
    add(
        "--voters",
        type=voter_argument,
        nargs="+",
        required=True,
        metavar="ID@HOST:PORT",
        help="all voters, as in controller.quorum.voters",
    )
    add("--count", type=int, default=1, help=f"number of brokers, at most {MAX_BROKERS}; default 1")
    add("--first-id", type=int, default=1001, metavar="ID", help="id of the first; default 1001")
    add("--release", default=DEFAULT_RELEASE, help=f"their Kafka; default {DEFAULT_RELEASE}")
    add(
        "--form",
        type=Form,
        default=Form.RELEASED,
        choices=list(Form),
        help="how they treat levels: released, as Kafka, or kip-778, as the document",
    )
    add("--host", default="127.0.0.1", help="address of their listener; default 127.0.0.1")
    add("--port", type=int, default=0, help="port of their listener; default: any free port")
    return parser
