"""The settings of notifications: the members of an Alertmanager cluster, and webhooks."""

from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from featurewatch.cli.errors import UsageError
from featurewatch.integrations.notify.settings import (
    NotifySettings,
    SecretError,
    WebhookTarget,
    is_public_address,
    parse_secrets,
)

_MAX_FILE_BYTES = 64 * 1024


def _address(text: str) -> str:
    try:
        parts = urlsplit(text)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_whole = False
    if not is_whole:
        raise ValueError("write the whole address, https://host:port/path")
    if parts.username is not None or parts.password is not None:
        raise ValueError("an address may hold no login: for Alertmanager, set authorization_file")
    return text


WebAddress = Annotated[str, Field(max_length=2000), AfterValidator(_address)]


class WebhookSection(BaseModel):
    """A webhook that gets every alert message, signed."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$", max_length=50)]
    """its name in its consumer group and in metrics"""
    url: WebAddress
    """https://…"""
    secret_file: Path
    """file of secrets, one per line: whsec_ and base64 of 24 to 64 random bytes"""
    private: bool = False
    """allow an address in a private network, and http://"""

    @model_validator(mode="after")
    def _check_private(self) -> Self:
        parts = urlsplit(self.url)
        if self.private:
            return self
        if parts.scheme != "https":
            raise ValueError("a webhook has https://, or private: true")
        try:
            is_public = is_public_address(str(ip_address(parts.hostname or "")))
        except ValueError:
            is_public = parts.hostname != "localhost"
        if not is_public:
            raise ValueError(f"{parts.hostname} is a private address: set private: true")
        return self


def _different_names(webhooks: list[WebhookSection]) -> list[WebhookSection]:
    names = [webhook.name for webhook in webhooks]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"two webhooks have the name {min(twice)}: give each its own name")
    return webhooks


class NotifySection(BaseModel):
    """Where alerts are sent, by `featurewatch notify` and by `up`."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    alertmanagers: Annotated[list[WebAddress], Field(max_length=20)] = []
    """http(s)://host:9093 of every member of the cluster, never of a load balancer"""
    authorization_file: Path | None = None
    """file with the value of the header Authorization for Alertmanager, such as Bearer …"""
    resend_s: Annotated[float, Field(ge=1, le=300)] = 30.0
    """resend firing alerts at this interval; Alertmanager ends them after four without one"""
    webhooks: Annotated[
        list[WebhookSection], Field(max_length=20), AfterValidator(_different_names)
    ] = []
    """each with name, url, secret_file, and private: true for one in a private network"""
    runbooks: str = ""
    """URL where you serve docs/runbooks, for links in alerts"""

    @property
    def is_configured(self) -> bool:
        """Whether there is any target."""
        return bool(self.alertmanagers or self.webhooks)

    def targets(self, page: str, cluster_names: dict[str, str]) -> NotifySettings:
        """The targets with what their files hold; ``page`` is the address of the page.

        Raises:
            UsageError: A file cannot be read, or does not hold what it must.
        """
        authorization = ""
        if self.authorization_file is not None:
            authorization = _content("notify.authorization_file", self.authorization_file).strip()
            if not authorization.isprintable() or not authorization.isascii() or not authorization:
                raise UsageError(
                    f"notify.authorization_file: {self.authorization_file} does not hold one line "
                    "for the header Authorization, such as Bearer …"
                )
        return NotifySettings(
            tuple(self.alertmanagers),
            tuple(map(_target, self.webhooks)),
            self.resend_s,
            authorization,
            self.runbooks,
            page,
            cluster_names,
        )


def _target(webhook: WebhookSection) -> WebhookTarget:
    setting = f"notify.webhooks {webhook.name} secret_file"
    try:
        secrets = parse_secrets(_content(setting, webhook.secret_file))
    except SecretError as error:
        raise UsageError(f"{setting}: {webhook.secret_file}: {error}") from None
    return WebhookTarget(webhook.name, webhook.url, secrets, webhook.private)


def _content(setting: str, file: Path) -> str:
    try:
        with file.open("rb") as stream:
            content = stream.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{setting}: {file} cannot be read ({error.strerror})") from None
    if len(content) > _MAX_FILE_BYTES:
        raise UsageError(f"{setting}: {file} has more than {_MAX_FILE_BYTES} bytes")
    return content.decode(errors="replace")
