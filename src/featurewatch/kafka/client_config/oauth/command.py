"""Runs the program of ``sasl.oauthbearer.token.command``, without a shell."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress

from featurewatch.kafka.client_config.errors import TokenError
from featurewatch.kafka.client_config.oauth.settings import TokenCommand


def printed_token(
    command: TokenCommand,
    timeout_s: float,
    max_bytes: int,
    monotonic: Callable[[], float] = time.monotonic,
) -> str:
    """What a program prints within a time and a size; what it started ends with it.

    Its error output is not read: it may have the secret that the program uses.

    Raises:
        TokenError: It cannot be started, fails, prints nothing or too much, or takes longer.
    """
    try:
        process = subprocess.Popen(
            [command.program, *command.arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "an argument is not valid"
        raise TokenError(f"the token command {command} cannot be started: {reason}") from None
    try:
        end_s = monotonic() + timeout_s
        output = _output(process, lambda: max(0.0, end_s - monotonic()), max_bytes)
        if output is None:
            raise TokenError(
                f"the token command {command} took longer than {timeout_s:g} s "
                "(sasl.login.read.timeout.ms)",
                is_transient=True,
            )
        if len(output) > max_bytes:
            raise TokenError(f"the token command {command} printed more than {max_bytes} bytes")
        if process.returncode:
            raise TokenError(
                f"the token command {command} failed with exit code {process.returncode}: run it "
                "to see why"
            )
        if not output.strip():
            raise TokenError(f"the token command {command} printed nothing")
        return output.decode("latin-1")
    finally:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _output(
    process: subprocess.Popen[bytes], remaining_s: Callable[[], float], max_bytes: int
) -> bytes | None:
    """What the process printed until it ended, or until that is too much; None: time is up."""
    assert process.stdout is not None  # noqa: S101 - it was asked for
    descriptor, output = process.stdout.fileno(), b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while len(output) <= max_bytes:
            if not selector.select(remaining_s()):
                return None
            part = os.read(descriptor, max_bytes + 1 - len(output))
            if not part:
                try:
                    process.wait(remaining_s())
                except subprocess.TimeoutExpired:
                    return None
                break
            output += part
    return output
