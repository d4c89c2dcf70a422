"""Which AWS credentials a login takes, and how they are fetched. No secret prints."""

from dataclasses import dataclass, field
from typing import Final

MECHANISM: Final = "AWS_MSK_IAM"

IAM_MODULE: Final = "software.amazon.msk.auth.iam.IAMLoginModule"
IAM_HANDLER: Final = "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
IAM_OAUTH_HANDLER: Final = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"
"""The classes of aws-msk-iam-auth."""


@dataclass(frozen=True, slots=True)
class RoleKeys:
    """The keys with which a role is assumed, if they are not those of the default chain."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class IamSettings:
    """The options of ``IAMLoginModule`` (``MSKCredentialProvider`` of aws-msk-iam-auth).

    ``profile`` and ``role_arn`` are empty where the default chain has the credentials, and
    ``sts_region`` for the global endpoint of STS. ``falls_back``: the default chain is used where a
    profile or a role gives none. ``logs_identity``: whose credentials they are is logged at DEBUG.
    """

    profile: str = ""
    role_arn: str = ""
    role_session_name: str = "aws-msk-iam-auth"
    role_external_id: str = ""
    role_keys: RoleKeys | None = None
    sts_region: str = ""
    uses_fips: bool = False
    falls_back: bool = False
    logs_identity: bool = False
    max_retries: int = 3
    max_backoff_s: float = 5.0

    def __str__(self) -> str:
        """Where the credentials are from, for messages."""
        if self.role_arn:
            return f"the AWS role {self.role_arn}"
        return f"the AWS profile {self.profile}" if self.profile else "the default chain of AWS"


@dataclass(frozen=True, slots=True)
class IamLogin:
    """A login by AWS_MSK_IAM."""

    settings: IamSettings

    @property
    def mechanism(self) -> str:
        """The SASL mechanism."""
        return MECHANISM


@dataclass(frozen=True, slots=True)
class MskToken:
    """MSK's signed token: it is made here, from AWS credentials.

    ``region`` is that of the cluster; empty: that of the environment or of the profile.
    """

    settings: IamSettings
    region: str = ""

    def __str__(self) -> str:
        return str(self.settings)
