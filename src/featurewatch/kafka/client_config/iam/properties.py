"""The options of ``IAMLoginModule`` in client properties, as aws-msk-iam-auth names them.

With ``sasl.mechanism=AWS_MSK_IAM`` they are options of that module, and with OAUTHBEARER and MSK's
``IAMOAuthBearerLoginCallbackHandler`` of ``OAuthBearerLoginModule``.
"""

import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

from featurewatch.common.text import quoted
from featurewatch.kafka.client_config.errors import SecurityError
from featurewatch.kafka.client_config.iam.settings import (
    IAM_MODULE,
    MECHANISM,
    IamLogin,
    IamSettings,
    RoleKeys,
)
from featurewatch.kafka.client_config.jaas import JAAS_KEY, mechanism_entry

_TEXTS: Final = (
    "awsProfileName",
    "awsRoleAccessKeyId",
    "awsRoleArn",
    "awsRoleExternalId",
    "awsRoleSecretAccessKey",
    "awsRoleSessionName",
    "awsRoleSessionToken",
    "awsStsRegion",
)
_SWITCHES: Final = ("awsAddDefaultProviders", "awsDebugCreds", "awsShouldUseFips")
_NUMBERS: Final = ("awsMaxBackOffTimeMs", "awsMaxRetries")
_OPTIONS: Final = (*_TEXTS, *_SWITCHES, *_NUMBERS)

_FORMS: Final = {
    "awsProfileName": r"[^\x00-\x1f\x7f]{1,128}",
    "awsRoleArn": r"arn:[a-z0-9-]{1,32}:iam::\d{1,20}:role/[\w+=,.@/-]{1,640}",
    "awsRoleExternalId": r"[\w+=,.@:/-]{2,1224}",
    "awsRoleSessionName": r"[\w+=,.@-]{2,64}",
    "awsStsRegion": r"[a-z]{2,8}(-[a-z0-9]{1,16}){1,4}",
}
"""What STS takes: anything else would be refused there, at each login."""

_MAX_NUMBER: Final = 600_000


def iam_login(properties: Mapping[str, str]) -> IamLogin:
    """The login of a ``sasl.mechanism=AWS_MSK_IAM``.

    Raises:
        SecurityError: An option is not supported or not valid, or the extra is not installed.
    """
    entry = mechanism_entry(properties, MECHANISM, IAM_MODULE, f"{IAM_MODULE} required;")
    _check_handler(properties, "sasl.login.callback.handler.class")
    return IamLogin(iam_settings(entry.options, MECHANISM))


def _check_handler(properties: Mapping[str, str], key: str) -> None:
    if value := properties.get(key, "").strip():
        raise SecurityError(
            f"{key}={value.rpartition('.')[2]} has no effect with {MECHANISM}: leave it out", key
        )


def iam_settings(options: Mapping[str, str], login: str) -> IamSettings:
    """The settings in the options of a login module; ``login`` names it in messages.

    Raises:
        SecurityError: An option is not supported or not valid, or the extra is not installed.
    """
    for name, value in options.items():
        _check_option(name, value, login)
    if find_spec("botocore") is None or find_spec("aws_msk_iam_sasl_signer") is None:
        raise SecurityError(
            f"{login} needs AWS's own packages: run pip install 'featurewatch[msk]'", JAAS_KEY
        )
    role_arn = options.get("awsRoleArn", "")
    if not role_arn:
        for name in options:
            if name.startswith("awsRole"):
                raise SecurityError(f"{JAAS_KEY}: {name} needs awsRoleArn", JAAS_KEY)
    return IamSettings(
        options.get("awsProfileName", ""),
        role_arn,
        options.get("awsRoleSessionName", "aws-msk-iam-auth"),
        options.get("awsRoleExternalId", ""),
        _role_keys(options),
        options.get("awsStsRegion", ""),
        _is_on(options, "awsShouldUseFips"),
        _is_on(options, "awsAddDefaultProviders"),
        _is_on(options, "awsDebugCreds"),
        int(options.get("awsMaxRetries", "3")),
        int(options.get("awsMaxBackOffTimeMs", "5000")) / 1000,
    )


def _check_option(name: str, value: str, login: str) -> None:
    if name == "awsMskRegionProvider":
        raise SecurityError(
            f"{JAAS_KEY}: awsMskRegionProvider names a Java class, which only Java clients can "
            "load: set the environment variable AWS_REGION instead",
            JAAS_KEY,
        )
    if name not in _OPTIONS:
        raise SecurityError(
            f"{JAAS_KEY}: the option {quoted(name)} is not supported with {login}: it has "
            f"{', '.join(_OPTIONS)}",
            JAAS_KEY,
        )
    if name in _SWITCHES and value.lower() not in ("true", "false"):
        raise SecurityError(f"{JAAS_KEY}: {name} is true or false", JAAS_KEY)
    if name in _NUMBERS and not (value.isdecimal() and int(value[:9]) <= _MAX_NUMBER):
        raise SecurityError(f"{JAAS_KEY}: {name} is not a number up to {_MAX_NUMBER}", JAAS_KEY)
    if (form := _FORMS.get(name)) is not None and re.fullmatch(form, value, re.ASCII) is None:
        raise SecurityError(f"{JAAS_KEY}: {name} is not valid for AWS", JAAS_KEY)


def _role_keys(options: Mapping[str, str]) -> RoleKeys | None:
    """The keys with which the role is assumed; None: those of the chain."""
    key_id = options.get("awsRoleAccessKeyId", "")
    secret = options.get("awsRoleSecretAccessKey", "")
    if not key_id and not secret:
        return None
    if not key_id or not secret:
        raise SecurityError(
            f"{JAAS_KEY}: awsRoleAccessKeyId and awsRoleSecretAccessKey are given together",
            JAAS_KEY,
        )
    return RoleKeys(key_id, secret, options.get("awsRoleSessionToken", ""))


def _is_on(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "false").lower() == "true"
