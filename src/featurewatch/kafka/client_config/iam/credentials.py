"""AWS credentials of a login, by botocore, which knows their sources and renews them. Blocks.

The options are those of ``MSKCredentialProvider`` of aws-msk-iam-auth, with one difference: where a
profile or a role gives no credentials, those of the default chain are used only if
``awsAddDefaultProviders`` says so. Another identity would get other rights, unnoticed.
"""

import logging
import os
import random
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from featurewatch.common.text import error_line, quoted
from featurewatch.kafka.client_config.errors import TokenError
from featurewatch.kafka.client_config.iam.settings import IamSettings

if TYPE_CHECKING:
    from botocore.credentials import ReadOnlyCredentials

LOG: Final = logging.getLogger("featurewatch.iam")

_BASE_BACKOFF_S: Final = 0.5
_TIMEOUT_S: Final = 5
_GLOBAL_REGION: Final = "aws-global"
_REFUSED: Final = frozenset(("AccessDenied", "AccessDeniedException"))
_ENDED: Final = frozenset(("ExpiredToken", "ExpiredTokenException", "RequestExpired"))
_UNKNOWN: Final = frozenset(("InvalidClientTokenId", "SignatureDoesNotMatch"))
_LOOKED_IN: Final = (
    "the environment, a web identity, ~/.aws, and the metadata of the container and of the instance"
)


class AwsCredentials:
    """The credentials of some settings; threads may share it.

    ``pause`` waits for seconds, ``chance`` gives a random number of at least 0 and below 1.
    """

    def __init__(
        self,
        settings: IamSettings,
        *,
        pause: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.settings = settings
        self._pause = pause
        self._chance = chance
        self._lock = threading.Lock()
        self._session: Any = None
        self._found: Any = None
        """Credentials of botocore, which renew themselves; None: none were found so far."""

    def current(self) -> "ReadOnlyCredentials":
        """Credentials that are valid now.

        Raises:
            TokenError: Nothing gives any: one line that says why. What fails for a moment was tried
                again as often as ``awsMaxRetries`` says.
        """
        with self._lock:
            attempt = 0
            while True:
                try:
                    return self._current()
                except TokenError as error:
                    self._found = None
                    if not error.is_transient or attempt >= self.settings.max_retries:
                        raise TokenError(str(error)) from None
                backoff_s = min(_BASE_BACKOFF_S * 2**attempt, self.settings.max_backoff_s)
                self._pause(backoff_s * self._chance())
                attempt += 1

    def region(self) -> str:
        """The region of the environment or of the profile; empty: neither has one."""
        for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
            if region := os.environ.get(name, "").strip():
                return region
        try:
            return self._botocore().get_config_variable("region") or ""
        except TokenError:
            return ""

    def _current(self) -> "ReadOnlyCredentials":
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            if self._found is None:
                self._found = self._find()
            frozen = self._found.get_frozen_credentials()
        except ClientError as error:
            raise _refused(self.settings, error.response.get("Error", {})) from None
        except (BotoCoreError, OSError) as error:
            raise _failed(self.settings, error) from None
        except RuntimeError:  # botocore: they are still expired after they were renewed
            raise TokenError(
                f"the credentials of {self.settings} have ended and no new ones came: renew them "
                "at their source"
            ) from None
        if not frozen.access_key or not frozen.secret_key:
            raise TokenError(f"{self.settings} gives credentials without a key")
        return frozen

    def _find(self) -> Any:
        """Credentials as the settings say; raises `TokenError` and botocore's own errors."""
        from botocore.exceptions import BotoCoreError, ClientError

        settings = self.settings
        try:
            found = self._given()
            if found is not None:
                found.get_frozen_credentials()  # a role is assumed here
        except (BotoCoreError, ClientError, TokenError) as error:
            if not settings.falls_back or not (settings.profile or settings.role_arn):
                raise
            LOG.warning(
                "%s gives no credentials (%s): those of the default chain are used",
                *(settings, error_line(error)),
            )
            found = self._botocore(with_profile=False).get_credentials()
        if found is None:
            raise TokenError(
                f"{settings} has no AWS credentials; looked in {_LOOKED_IN}: run "
                "aws sts get-caller-identity as this user to see what is found"
            )
        if settings.logs_identity and LOG.isEnabledFor(logging.DEBUG):
            self._log_identity(found)
        return found

    def _given(self) -> Any:
        """The credentials of the profile, the role or the chain; None: there are none."""
        from botocore.credentials import Credentials

        keys, session = self.settings.role_keys, self._botocore()
        source = (
            session.get_credentials()
            if keys is None
            else Credentials(keys.access_key_id, keys.secret_access_key, keys.session_token or None)
        )
        if source is None or not self.settings.role_arn:
            return source
        from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials

        extra = {"RoleSessionName": self.settings.role_session_name}
        if self.settings.role_external_id:
            extra["ExternalId"] = self.settings.role_external_id
        fetcher = AssumeRoleCredentialFetcher(
            self._sts, source, self.settings.role_arn, extra_args=extra
        )
        return DeferredRefreshableCredentials(
            method="assume-role", refresh_using=fetcher.fetch_credentials
        )

    def _botocore(self, *, with_profile: bool = True) -> Any:
        from botocore.exceptions import BotoCoreError
        from botocore.session import Session

        if not with_profile:
            return Session()
        if self._session is None:
            session = Session(profile=self.settings.profile or None)
            try:
                session.get_scoped_config()
            except (BotoCoreError, OSError) as error:
                raise _failed(self.settings, error) from None
            self._session = session
        return self._session

    def _sts(self, service: str, **keys: Any) -> Any:
        """A client of STS: its endpoint is the global one, or that of ``awsStsRegion``."""
        from botocore.config import Config

        config = Config(
            connect_timeout=_TIMEOUT_S,
            read_timeout=_TIMEOUT_S,
            retries={"total_max_attempts": 1},
            use_fips_endpoint=self.settings.uses_fips,
        )
        region = self.settings.sts_region or _GLOBAL_REGION
        return self._botocore().create_client(service, region_name=region, config=config, **keys)

    def _log_identity(self, found: Any) -> None:
        """``awsDebugCreds``: says whose credentials they are; a failure changes nothing."""
        from botocore.exceptions import BotoCoreError, ClientError

        frozen = found.get_frozen_credentials()
        keys = {
            "aws_access_key_id": frozen.access_key,
            "aws_secret_access_key": frozen.secret_key,
            "aws_session_token": frozen.token,
        }
        try:
            identity = self._sts("sts", **keys).get_caller_identity()
        except (BotoCoreError, ClientError, OSError) as error:
            LOG.debug("whose credentials these are is unknown: %s", quoted(error_line(error)))
            return
        LOG.debug("the credentials are those of %s", quoted(str(identity.get("Arn"))))


def _refused(settings: IamSettings, error: dict[str, Any]) -> TokenError:
    """What STS refused, as one line."""
    code, message = str(error.get("Code", "")), quoted(str(error.get("Message", "")))
    reason = f"({quoted(code)}: {message})"
    if code in _REFUSED and settings.role_arn:
        return TokenError(
            f"{settings} may not be assumed {reason}: let its trust policy name this identity, and "
            "allow the identity sts:AssumeRole"
        )
    if code in _ENDED:
        return TokenError(
            f"the credentials that {settings} needs have ended {reason}: renew them, or compare "
            "this machine's clock"
        )
    if code in _UNKNOWN:
        return TokenError(
            f"the keys that {settings} needs are not valid {reason}: correct the access key and "
            "its secret"
        )
    is_lasting = code in _REFUSED or code.startswith(("Malformed", "Validation", "Region"))
    return TokenError(
        f"AWS refused credentials of {settings} {reason}", is_transient=not is_lasting
    )


def _failed(settings: IamSettings, error: Exception) -> TokenError:
    """What botocore could not do, as one line."""
    from botocore.exceptions import (
        CredentialRetrievalError,
        HTTPClientError,
        MetadataRetrievalError,
        ProfileNotFound,
    )

    text = quoted(error_line(error))
    if isinstance(error, ProfileNotFound):
        return TokenError(
            f"no such AWS profile ({text}): correct awsProfileName, or AWS_PROFILE, or the files "
            "in ~/.aws"
        )
    transient = (HTTPClientError, CredentialRetrievalError, MetadataRetrievalError, OSError)
    return TokenError(
        f"no credentials come from {settings}: {text}", is_transient=isinstance(error, transient)
    )
