"""The clients from ordinary code, on nodes that are served in another thread."""

import pytest

from featurewatch.admin import KafkaApiError, RequestError, TopicAdmin, blocking
from tests.cli.released_node import ReleasedNode

pytestmark = pytest.mark.form("released")


def test_a_client_is_called_without_a_coroutine() -> None:
    """Calls return their results or raise, several over one connection (A-35, A-36 as
    released); other attributes are the client's."""
    with (
        ReleasedNode().served() as node,
        blocking(TopicAdmin.connect(node.address)) as admin,
    ):
        assert admin.create_topic("a", 2, 1).topic == "a"
        assert admin.list_topics() == ("a", "t")
        with pytest.raises(KafkaApiError):
            admin.delete_topic("x")
        assert admin.names_controllers is False
        with pytest.raises(AttributeError, match="nothing"):
            admin.nothing()


async def test_a_coroutine_cannot_wait_for_another_loop() -> None:
    """It is an error at once, and not a call that hangs."""
    with (
        pytest.raises(RequestError, match="await the client instead"),
        blocking(TopicAdmin.connect("a:1")),
    ):
        pass
