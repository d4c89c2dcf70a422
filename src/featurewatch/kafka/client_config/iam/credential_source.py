"""The credentials of one login by AWS_MSK_IAM, which all connections of the process share.

A shell: it owns the thread that fetches. Credentials that are known come at once; botocore renews
those that end, before they do.
"""

import asyncio
import threading
from concurrent.futures import Future
from functools import lru_cache
from typing import TYPE_CHECKING

from featurewatch.common.text import error_line
from featurewatch.kafka.client_config.errors import TokenError
from featurewatch.kafka.client_config.iam.credentials import AwsCredentials
from featurewatch.kafka.client_config.iam.payload import signed_payload
from featurewatch.kafka.client_config.iam.region import region_in
from featurewatch.kafka.client_config.iam.settings import IamLogin, IamSettings, MskToken

if TYPE_CHECKING:
    from botocore.credentials import ReadOnlyCredentials


class CredentialSource:
    """Signs the logins of connections, from any event loop."""

    def __init__(self, login: IamLogin, credentials: AwsCredentials | None = None) -> None:
        self.login = login
        self._credentials = credentials or aws_credentials(login.settings)
        self._lock = threading.Lock()
        self._pending: Future[ReadOnlyCredentials] | None = None

    async def payload(self, host: str, timeout_s: float) -> bytes:
        """The message that logs in to the broker ``host``, signed within this time.

        Raises:
            TokenError: There are no credentials, or no region. A fetch that is not over continues
                for the next call.
        """
        future = asyncio.wrap_future(self._fetch())
        try:
            done, _ = await asyncio.wait((future,), timeout=timeout_s)
            if not done:
                raise TokenError(
                    f"no credentials came from {self.login.settings} within {timeout_s:g} s"
                )
            credentials = future.result()
        finally:
            future.cancel()  # the fetch continues
        region = cluster_region(host, self._credentials)
        return await asyncio.to_thread(signed_payload, host, region, credentials)

    def _fetch(self) -> "Future[ReadOnlyCredentials]":
        with self._lock:
            if self._pending is None:
                pending: Future[ReadOnlyCredentials] = Future()
                self._pending = pending
                pending.set_running_or_notify_cancel()
                threading.Thread(
                    target=self._run, args=(pending,), name="featurewatch-iam", daemon=True
                ).start()
            return self._pending

    def _run(self, pending: "Future[ReadOnlyCredentials]") -> None:
        """Fetches in a separate thread, and completes ``pending`` in any case."""
        try:
            result: ReadOnlyCredentials | TokenError = self._credentials.current()
        except TokenError as error:
            result = error
        except Exception as error:
            result = TokenError(f"no credentials from {self.login.settings}: {error_line(error)}")
        with self._lock:
            self._pending = None
        if isinstance(result, TokenError):
            pending.set_exception(result)
        else:
            pending.set_result(result)


def cluster_region(host: str, credentials: AwsCredentials) -> str:
    """The region of a broker; raises `TokenError` if nothing names one."""
    if region := region_in(host) or credentials.region():
        return region
    raise TokenError(
        f"the AWS region of {host} is unknown: its name has none, so set the environment variable "
        "AWS_REGION"
    )


def msk_token_text(source: MskToken) -> str:
    """The text of a token, signed now. Raises `TokenError`."""
    from featurewatch.kafka.client_config.iam.token import signed_token

    credentials = aws_credentials(source.settings)
    found = credentials.current()
    region = source.region or credentials.region()
    if not region:
        raise TokenError(
            "the AWS region of the cluster is unknown: set the environment variable AWS_REGION"
        )
    return signed_token(region, found)


@lru_cache(maxsize=64)
def aws_credentials(settings: IamSettings) -> AwsCredentials:
    """The credentials of some settings in this process."""
    return AwsCredentials(settings)


@lru_cache(maxsize=64)
def credential_source(login: IamLogin) -> CredentialSource:
    """The one source of credentials of a login in this process."""
    return CredentialSource(login)
