"""The options of IAMLoginModule, with both mechanisms, and what every client makes of them."""

from pathlib import Path

import pytest

from featurewatch.agents.app import _credentials
from featurewatch.kafka.client_config.clients import java_properties, librdkafka_properties
from featurewatch.kafka.client_config.errors import SecurityError
from featurewatch.kafka.client_config.iam.region import region_in
from featurewatch.kafka.client_config.iam.settings import (
    IAM_HANDLER,
    IAM_MODULE,
    IAM_OAUTH_HANDLER,
    IamLogin,
    IamSettings,
    MskToken,
    RoleKeys,
)
from featurewatch.kafka.client_config.login import login_of
from featurewatch.kafka.client_config.oauth.settings import OauthLogin
from featurewatch.kafka.client_properties import client_config
from featurewatch.streams.bus.settings import BusSettings
from tests.msk import HOST, KEY_ID, ROLE, SECRET, aws_environment, check_token

BASE = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "AWS_MSK_IAM",
    "sasl.client.callback.handler.class": IAM_HANDLER,
}
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
TOKEN = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.login.callback.handler.class": IAM_OAUTH_HANDLER,
    "sasl.client.callback.handler.class": IAM_OAUTH_HANDLER,
}


def with_options(text: str) -> dict[str, str]:
    """The properties of AWS_MSK_IAM with options of its module."""
    return {**BASE, "sasl.jaas.config": f"{IAM_MODULE} required {text};"}


def login(properties: dict[str, str]) -> object:
    """The login, by way of the checks of a file."""
    client_config(properties)
    return login_of(properties)


def test_the_options_of_both_modules_are_the_same_settings() -> None:
    """Without options the default chain is taken; a secret never prints."""
    assert login(BASE) == login(with_options("")) == IamLogin(IamSettings())
    options = (
        f'awsProfileName="ops" awsRoleArn="{ROLE}" awsRoleSessionName="watch" '
        'awsRoleExternalId="ext-1" awsRoleAccessKeyId="AK" awsRoleSecretAccessKey="hush" '
        'awsRoleSessionToken="st" awsStsRegion="eu-central-1" awsDebugCreds=true '
        'awsAddDefaultProviders="true" awsShouldUseFips=false awsMaxRetries="7" '
        'awsMaxBackOffTimeMs="500"'
    )
    expected = IamSettings(
        *("ops", ROLE, "watch", "ext-1", RoleKeys("AK", "hush", "st"), "eu-central-1"),
        uses_fips=False,
        falls_back=True,
        logs_identity=True,
        max_retries=7,
        max_backoff_s=0.5,
    )
    found = login(with_options(options))
    assert found == IamLogin(expected)
    assert "hush" not in repr(found)
    by_token = login({**TOKEN, "sasl.jaas.config": f"{OAUTH_MODULE} required {options};"})
    assert by_token == OauthLogin(MskToken(expected))
    assert login(TOKEN) == OauthLogin(MskToken(IamSettings()))


@pytest.mark.parametrize(
    ("properties", "line"),
    [
        (with_options("user=a"), "the option user is not supported with AWS_MSK_IAM: it has aws"),
        (with_options('awsMskRegionProvider="x"'), "names a Java class.*set .* AWS_REGION"),
        (with_options("awsDebugCreds=yes"), "awsDebugCreds is true or false"),
        (with_options("awsMaxRetries=many"), "awsMaxRetries is not a number up to"),
        (with_options('awsRoleArn="role"'), "awsRoleArn is not valid for AWS"),
        (with_options('awsStsRegion="eu west"'), "awsStsRegion is not valid for AWS"),
        (with_options("awsRoleSessionName=a1"), "awsRoleSessionName needs awsRoleArn"),
        (
            with_options(f'awsRoleArn="{ROLE}" awsRoleAccessKeyId=a'),
            "awsRoleSecretAccessKey are given together",
        ),
        ({**BASE, "sasl.jaas.config": f"{OAUTH_MODULE} required;"}, "use software.amazon.msk"),
        (
            {**BASE, "sasl.login.callback.handler.class": IAM_OAUTH_HANDLER},
            "has no effect with AWS_MSK_IAM: leave it out",
        ),
        (
            {**TOKEN, "sasl.oauthbearer.token.endpoint.url": "https://idp.test/"},
            "token.endpoint.url has no effect with IAMOAuthBearerLoginCallbackHandler",
        ),
        ({**TOKEN, "sasl.jaas.config": f"{IAM_MODULE} required;"}, "use org.apache.kafka"),
    ],
)
def test_what_cannot_be_used_is_named(properties: dict[str, str], line: str) -> None:
    """Each with what to write instead, and never with its value."""
    with pytest.raises(SecurityError, match=line):
        login(properties)


def test_without_the_extra_the_line_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not an ImportError at the first login."""
    module = "featurewatch.kafka.client_config.iam.properties.find_spec"
    monkeypatch.setattr(module, lambda name: None)
    with pytest.raises(SecurityError, match=r"pip install 'featurewatch\[msk\]'"):
        login(BASE)


@pytest.mark.parametrize(
    ("host", "region"),
    [
        (HOST, "eu-central-1"),
        ("boot-a.c1.kafka-serverless.us-east-1.amazonaws.com", "us-east-1"),
        ("b-1.x.c1.kafka.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("b-1.x.c1.kafka.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("b-1.us-east-1-copy.c1.kafka.ap-southeast-2.amazonaws.com", "ap-southeast-2"),
        ("kafka-EU-west-3.example.org", "eu-west-3"),
        ("kafka.example.org", ""),
        ("northwest-1.example.org", ""),
        ("127.0.0.1", ""),
    ],
)
def test_the_region_is_in_the_host_name(host: str, region: str) -> None:
    """Of several, the one before the domain."""
    assert region_in(host) == region


def test_clients_of_the_bus_take_the_signed_token(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """librdkafka and aiokafka have no AWS_MSK_IAM; Java's clients load AWS's own module."""
    keys = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET}
    aws_environment(monkeypatch, tmp_path, **keys)
    properties = with_options("awsMaxRetries=1")
    config = librdkafka_properties(properties, f"{HOST}:9098")
    assert config["sasl.mechanism"] == "OAUTHBEARER"
    text, end_s, subject, extensions = config["oauth_cb"]("")
    check_token(text, "eu-central-1", {KEY_ID: SECRET})
    assert end_s > 0
    assert (subject, extensions) == ("aws-msk-iam", {})
    by_token = librdkafka_properties(TOKEN, f"{HOST}:9098")["oauth_cb"]("")[0]
    check_token(by_token, "eu-central-1", {KEY_ID: SECRET})
    assert BusSettings(f"{HOST}:9098", properties).client()["sasl.mechanism"] == "OAUTHBEARER"
    assert _credentials(BusSettings(f"{HOST}:9098", properties)).mechanism.value == "OAUTHBEARER"
    for given, handler in ((properties, "client"), (TOKEN, "login")):
        java = java_properties(given)
        assert java[f"sasl.{handler}.callback.handler.class"].startswith("software.amazon.msk")
    assert java_properties(properties)["sasl.jaas.config"] == properties["sasl.jaas.config"]
