"""Why a request to a node has no answer. Each text is one line, for people."""


class NodeError(ConnectionError):
    """The node could not be reached, broke off, or is not a Kafka node: one line, for people."""


class AuthenticationError(NodeError):
    """TLS or SASL failed on either side: a matter of configuration."""


class ResponseTimeoutError(NodeError):
    """No response in time; the connection is closed."""


class LocalResourceError(NodeError):
    """Out of local resources (such as file descriptors); says nothing about the node."""


class NoTokenError(LocalResourceError):
    """There is no token or ticket to log in with; says nothing about the node."""


class OtherNodeError(NodeError):
    """Another node, or a node of another cluster, listens at the address."""
