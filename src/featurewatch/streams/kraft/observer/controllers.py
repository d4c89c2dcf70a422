"""The controllers' addresses, the leader, and which address gets the next request."""

from collections.abc import Mapping, Sequence

from featurewatch.kafka.address import Address
from featurewatch.streams.types import LeaderAndEpoch


class LeaderLocator:
    """Finds the leader of the newest known epoch.

    Every controller names the leader, from Fetch version 17 on with its address. Before that, or
    where that address cannot be reached from here, the bootstrap addresses are tried in turn until
    the leader itself responds, and after them those that were learned since.
    """

    def __init__(
        self, bootstrap: Sequence[Address], epoch: int, responding: Sequence[Address] = ()
    ) -> None:
        """``responding`` are addresses that responded before the log began again."""
        if not bootstrap:
            raise ValueError("no controller's address is given")
        self._responding = tuple(responding)
        self.leader = LeaderAndEpoch(-1, epoch)
        self._bootstrap = tuple(bootstrap)
        self._learned: tuple[Address, ...] = ()
        self._first_index = 0
        self._named: dict[int, Address] = {}
        self._confirmed: dict[int, Address] = {}
        self._tried: set[Address] = set()
        self._behind: set[Address] = set()

    @property
    def leader_address(self) -> Address | None:
        """The leader's address, if it is known."""
        return self._confirmed.get(self.leader.id) or self._named.get(self.leader.id)

    def next_address(self) -> Address | None:
        """The leader's address, or the next bootstrap or learned one; None: the round is over."""
        for addresses in (self._confirmed, self._named):
            address = addresses.get(self.leader.id)
            if address is not None and address not in self._tried:
                return address
        count = len(self._bootstrap)
        for step in range(count):
            candidate = self._bootstrap[(self._first_index + step) % count]
            if candidate not in self._tried:
                return candidate
        others = (*self._named.values(), *self._learned, *self._responding)
        return next((address for address in others if address not in self._tried), None)

    def learn(self, addresses: Sequence[Address]) -> None:
        """Use these addresses, too: those that the cluster said last."""
        self._learned = tuple(addresses)

    def new_round(self) -> None:
        """Every address may be tried again, another one first."""
        self._tried.clear()
        self._first_index += 1

    def update_endpoints(self, endpoints: Mapping[int, Address]) -> None:
        """Add the addresses that a response named."""
        self._named.update(endpoints)

    def update_leader(self, leader: LeaderAndEpoch) -> bool:
        """Follow a newer epoch, or this one's leader once it is known; returns whether it is new.

        An epoch has one leader: another one for the same epoch is ignored.
        """
        is_newer = leader.epoch > self.leader.epoch
        is_elected = leader.epoch == self.leader.epoch and self.leader.id < 0 <= leader.id
        if not (is_newer or is_elected):
            return False
        self.leader = leader
        self._tried.clear()
        self._behind.clear()
        return True

    def confirm_leader(self, address: Address) -> None:
        """The leader responded from this address."""
        self._confirmed[self.leader.id] = address
        self._tried.clear()
        self._behind.clear()

    def mark_tried(self, address: Address) -> None:
        """This address is of no use in this round."""
        self._tried.add(address)

    def mark_behind(self, address: Address) -> None:
        """The node at this address knows an older epoch only."""
        self._behind.add(address)
        self._forget(address)

    def not_leader(self, address: Address) -> None:
        """The node at this address does not lead."""
        self._behind.discard(address)
        self._forget(address)

    def failed(self, address: Address) -> None:
        """This address gave no usable response."""
        self._forget(address)

    @property
    def all_behind(self) -> bool:
        """Whether the controllers know an older epoch only.

        Each configured one must have responded so; where the cluster has moved and none of them
        responds, each of the others. Those that do not respond may have elected the newer epoch:
        they must not be more than those that did.
        """
        known = {*self._bootstrap, *self._named.values(), *self._learned, *self._responding}
        configured = known.intersection(self._bootstrap)
        asked = configured if self._behind & configured else known - configured
        behind = self._behind & known
        return bool(asked) and asked <= behind and 2 * len(behind) >= len(known)

    def reset(self) -> "LeaderLocator":
        """The same addresses, without a leader; those that the lost log named are forgotten unless
        they responded."""
        return LeaderLocator(self._bootstrap, 0, sorted(self._behind, key=str))

    def _forget(self, address: Address) -> None:
        self._tried.add(address)
        self._confirmed = {
            id_: node_address
            for id_, node_address in self._confirmed.items()
            if node_address != address
        }
