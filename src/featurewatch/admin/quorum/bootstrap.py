"""Whether brokers still find the quorum's leader after the removal of a voter; pure.

A broker finds the leader only through its own ``controller.quorum.bootstrap.servers`` (KIP-853),
which it names when it is asked for its settings. The leader of the quorum does not look at it.
"""

from collections.abc import Mapping
from typing import Final

from featurewatch.admin.quorum.checks import Check, Verdict
from featurewatch.common.id_runs import format_ids
from featurewatch.streams.quorum import QuorumDescription
from featurewatch.streams.types import NodeId

BOOTSTRAP_SERVERS: Final = "controller.quorum.bootstrap.servers"


def checks_of_bootstrap(
    quorum: QuorumDescription, removed: NodeId, servers: Mapping[NodeId, str]
) -> tuple[Check, ...]:
    """Whether brokers have an address besides those of the voter ``removed``.

    ``servers`` is what brokers name; without it, or without the voter's endpoints, nothing is
    known, and there is no check. Another address may be a name of the same controller, so a yes
    says no more than that there is one.
    """
    own = {_address(f"{one.host}:{one.port}") for one in quorum.endpoints.get(removed, ())}
    addresses = {
        broker: {_address(one) for one in text.split(",") if one.strip()}
        for broker, text in servers.items()
        # The broker of the same process is shut down with the controller.
        if broker != removed
    }
    named = {broker: found for broker, found in addresses.items() if found}
    if not own or not named:
        return ()
    alone = [broker for broker, found in named.items() if found <= own]
    if not alone:
        text = f"the brokers that name {BOOTSTRAP_SERVERS} have another address there"
        return (Check("bootstrap", Verdict.YES, text),)
    text = (
        f"broker {format_ids(alone)} has no other address in {BOOTSTRAP_SERVERS} than "
        f"{', '.join(sorted(own))}, and would find no leader after the next election: set the "
        "addresses of other controllers and restart it first"
    )
    return (Check("bootstrap", Verdict.NO, text),)


def _address(text: str) -> str:
    """An address as it is compared; a listener's brackets and case do not matter."""
    host, _, port = text.strip().rpartition(":")
    return f"{host.strip('[]').lower()}:{port}"
