"""The client's side of SASL GSSAPI (RFC 4752), without IO once the first token is there.

Kafka and ZooKeeper agree on a quality of protection here, and then protect nothing: neither wraps
a byte that follows (``SaslClientAuthenticator``, ``SaslServerAuthenticator``). What a server offers
is therefore the default of Java's SASL, ``auth``, unless ``javax.security.sasl.qop`` says
otherwise, and a client that wrapped what follows could not be understood.
"""

from typing import Final

from featurewatch.kafka.client_config.kerberos.gss import Context, ContextError
from featurewatch.kafka.client_config.kerberos.settings import QOPS
from featurewatch.kafka.sasl import Exchange, SaslError

_MAX_STEPS: Final = 8
"""Messages before the context is complete; Kerberos needs two."""

_MAX_BUFFER: Final = 0x010000
"""The largest message that would be taken with a protection, as Java's SASL says by default."""


def gssapi_exchange(context: Context, token: bytes, qops: tuple[str, ...]) -> Exchange:
    """Completes a context whose first token is ``token``, and agrees on one of ``qops``.

    The server derives whom the login is for from the ticket.

    Raises:
        SaslError: The server did not prove itself, or offers none of ``qops``.
    """
    answer = yield token
    for _ in range(_MAX_STEPS):
        if context.complete:
            break
        answer = yield _step(context, answer)
    else:
        raise SaslError("the server's Kerberos login does not end")
    try:
        offer = context.unwrap(answer)
        message = context.wrap(_reply(offer, qops))
    except ContextError as error:
        raise SaslError(f"the server's offer cannot be read: {error}") from None
    yield message


def _step(context: Context, answer: bytes) -> bytes:
    try:
        return context.step(answer)
    except ContextError as error:
        raise SaslError(
            f"the server does not prove itself: {error}: is it the right server?"
        ) from None


def _reply(offer: bytes, qops: tuple[str, ...]) -> bytes:
    """The layer, the largest message, and no name: one byte, three, and none (RFC 4752, 3.1)."""
    if len(offer) != 4:
        raise SaslError("the server's offer of a protection is not of four bytes")
    offered = [name for bit, name in enumerate(QOPS) if offer[0] & 1 << bit]
    chosen = next((name for name in qops if name in offered), None)
    if chosen is None:
        raise SaslError(
            f"the server offers the protection {', '.join(offered) or 'none'} and not "
            f"{', '.join(qops)}: set javax.security.sasl.qop to one of these"
        )
    size = 0 if chosen == "auth" else _MAX_BUFFER
    return bytes([1 << QOPS.index(chosen)]) + size.to_bytes(3)
