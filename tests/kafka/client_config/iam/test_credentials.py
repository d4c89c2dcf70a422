"""Where AWS credentials are from, and one line for each reason that there are none."""

import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from featurewatch.kafka.client_config.errors import TokenError
from featurewatch.kafka.client_config.iam.credentials import AwsCredentials
from featurewatch.kafka.client_config.iam.settings import IamSettings, RoleKeys
from tests.msk import KEY_ID, ROLE, SECRET, SESSION, Sts, aws_environment, running_sts

KEYS = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET}
ROLE_SETTINGS = IamSettings(role_arn=ROLE, role_session_name="watch", max_retries=2)


@pytest.fixture
def sts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Sts]:
    """STS, and an environment with a key that may assume roles."""
    with running_sts() as running_one:
        aws_environment(monkeypatch, tmp_path, **KEYS)
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", running_one.url)
        yield running_one


def credentials(settings: IamSettings, pauses: list[float] | None = None) -> AwsCredentials:
    """Credentials whose pauses are noted instead of waited for."""
    pause = (pauses if pauses is not None else []).append
    return AwsCredentials(settings, pause=pause, chance=lambda: 0.5)


def test_keys_of_the_environment_and_of_a_profile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The default chain is botocore's; a profile goes before it."""
    (tmp_path / "credentials").write_text(
        "[ops]\naws_access_key_id=AKOPS\naws_secret_access_key=s\nregion=eu-north-1\n"
    )
    aws_environment(monkeypatch, tmp_path, **KEYS, AWS_SESSION_TOKEN=SESSION)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    found = credentials(IamSettings()).current()
    assert (found.access_key, found.secret_key, found.token) == (KEY_ID, SECRET, SESSION)
    ops = credentials(IamSettings(profile="ops"))
    assert ops.current().access_key == "AKOPS"
    assert ops.region() == "eu-north-1"
    monkeypatch.setenv("AWS_REGION", "us-east-2")
    assert ops.region() == "us-east-2"


def test_a_role_is_assumed_and_assumed_again_before_it_ends(sts: Sts) -> None:
    """With the session's name and external id; the keys of the role sign, not those of the user."""
    sts.lifetime = timedelta(minutes=5)  # botocore renews in the last ten minutes
    settings = IamSettings(role_arn=ROLE, role_session_name="watch", role_external_id="ext-1")
    source = credentials(settings)
    for _ in range(2):
        found = source.current()
        assert (found.access_key, found.token) == ("ASIAROLE", "role+")
    assert len(sts.requests) >= 2
    expected = {"Action": "AssumeRole", "RoleArn": ROLE, "RoleSessionName": "watch"}
    assert sts.requests[0].items() >= {**expected, "ExternalId": "ext-1"}.items()
    assert set(sts.key_ids) == {KEY_ID}


def test_the_role_has_its_own_keys(sts: Sts) -> None:
    """``awsRoleAccessKeyId`` and its secret go before the default chain."""
    settings = IamSettings(role_arn=ROLE, role_keys=RoleKeys("AKOTHER", "s"))
    credentials(settings).current()
    assert sts.key_ids == ["AKOTHER"]


@pytest.mark.parametrize(
    ("status", "code", "line", "pauses"),
    [
        (403, "AccessDenied", rf"the AWS role {ROLE} may not be assumed.*trust policy", []),
        (403, "ExpiredToken", "credentials that the AWS role .* needs have ended.*renew", []),
        (403, "InvalidClientTokenId", "the keys that the AWS role .* needs are not valid", []),
        (503, "ServiceUnavailable", "AWS refused credentials of the AWS role", [0.25, 0.5]),
    ],
)
def test_what_sts_refuses_is_one_line(
    sts: Sts, status: int, code: str, line: str, pauses: list[float]
) -> None:
    """What may pass is tried again, as often as awsMaxRetries says."""
    sts.refusal = (status, code, "User: arn:aws:iam::1:user/u is not authorized")
    paused: list[float] = []
    with pytest.raises(TokenError, match=line) as raised:
        credentials(ROLE_SETTINGS, paused).current()
    assert "\n" not in str(raised.value)
    assert SECRET not in str(raised.value)
    assert paused == pauses
    assert len(sts.requests) == len(pauses) + 1


def test_sts_that_cannot_be_reached_is_one_line(sts: Sts, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address is in it."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1")
    with pytest.raises(TokenError, match=r"no credentials come from the AWS role .*127.0.0.1:1"):
        credentials(ROLE_SETTINGS).current()


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (
            IamSettings(),
            "the default chain of AWS has no AWS credentials; looked in",
        ),
        (IamSettings(profile="absent"), r"no such AWS profile .*absent.*: correct awsProf"),
        (IamSettings(role_arn=ROLE), f"the AWS role {ROLE} has no AWS credentials"),
    ],
)
def test_no_credentials_are_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: IamSettings, line: str
) -> None:
    """Also where a role has nobody to assume it."""
    aws_environment(monkeypatch, tmp_path)
    with pytest.raises(TokenError, match=line):
        credentials(settings).current()


def test_another_identity_is_used_only_if_the_options_say_so(
    sts: Sts, caplog: pytest.LogCaptureFixture
) -> None:
    """A role that may not be assumed is an error; with awsAddDefaultProviders=true a warning."""
    sts.refusal = (403, "AccessDenied", "no")
    with pytest.raises(TokenError):
        credentials(ROLE_SETTINGS).current()
    falling_back = ROLE_SETTINGS.__class__(role_arn=ROLE, falls_back=True)
    assert credentials(falling_back).current().access_key == KEY_ID
    assert "gives no credentials" in caplog.text
    assert SECRET not in caplog.text


def test_whose_credentials_they_are_is_logged_on_request(
    sts: Sts, caplog: pytest.LogCaptureFixture
) -> None:
    """``awsDebugCreds``, and only at DEBUG."""
    settings = IamSettings(logs_identity=True)
    credentials(settings).current()
    assert sts.requests == []
    with caplog.at_level(logging.DEBUG, "featurewatch.iam"):
        credentials(settings).current()
    assert f"the credentials are those of {ROLE}/seen" in caplog.text
    assert SECRET not in caplog.text
