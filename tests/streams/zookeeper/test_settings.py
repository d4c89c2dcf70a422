"""The settings of the ZooKeeper source: addresses, chroots and logins."""

from typing import Any

import pytest
from kazoo.client import KazooClient

from featurewatch.kafka.client_config.errors import SecurityError
from featurewatch.streams.zookeeper.settings import ZookeeperLogin, ZookeeperSettings, parse_hosts


def test_passwords_do_not_print():
    """Nothing of a login but its name shows."""
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.username": "watcher",
        "sasl.password": "s3cret",
    }
    settings = ZookeeperSettings("a:1", login=ZookeeperLogin.from_properties(properties))
    assert settings.login.username == "watcher"
    assert "s3cret" not in repr(settings)


@pytest.mark.parametrize(
    ("text", "servers", "root"),
    [
        ("a", "a:2181", ""),
        ("a:1,b", "a:1,b:2181", ""),
        (" a:1 , [::1]:2/kafka/x/ ", "a:1,[::1]:2", "/kafka/x"),
        ("[::1]/", "[::1]:2181", ""),
    ],
)
def test_hosts_and_chroot(text, servers, root):
    """ZooKeeper's own form; ports may be left out, slashes at the end do not count."""
    addresses, chroot = parse_hosts(text)
    assert (",".join(map(str, addresses)), chroot) == (servers, root)
    assert ZookeeperSettings(text).connect_string == servers + root
    KazooClient(servers + root)


@pytest.mark.parametrize("text", ["", "/kafka", "a:1/kafka,b:1", "a:x", "a:0"])
def test_invalid_hosts(text):
    """The error names the fault."""
    with pytest.raises(ValueError, match=r"'.*' (names|has|is)"):
        ZookeeperSettings(text)


def test_a_mechanism_that_zookeeper_does_not_have():
    """It is named, with the one to use."""
    with pytest.raises(SecurityError, match=r"PLAIN is not supported.*use DIGEST-MD5"):
        ZookeeperLogin.from_properties({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"})
    with pytest.raises(SecurityError, match=r"sasl.username and sasl.password are needed"):
        ZookeeperLogin.from_properties({"security.protocol": "SASL_PLAINTEXT"})


@pytest.mark.parametrize("name", ["session_timeout_ms", "heartbeat_ms", "window"])
def test_numbers_that_would_stop_it(name):
    """Nothing below 1 is taken."""
    settings: dict[str, Any] = {name: 0}
    with pytest.raises(ValueError, match=f"{name} must be at least 1"):
        ZookeeperSettings("a:1", **settings)
