"""Where the controllers are, which of them leads, and whom to ask next."""

from collections.abc import Mapping, Sequence

from featurewatch.streams.net.address import Address
from featurewatch.streams.types import LeaderAndEpoch


class LeaderLocator:
    """The addresses that an observer knows and the leadership that it has heard of.

    Every controller names the leader, from Fetch version 17 on with its address. Before that, or
    where that address cannot be reached from here, the bootstrap addresses are asked in turn until
    the leader itself answers.
    """

    def __init__(self, bootstrap: Sequence[Address], epoch: int) -> None:
        if not bootstrap:
            raise ValueError("no controller's address is given")
        self.leader = LeaderAndEpoch(-1, epoch)
        self._bootstrap = tuple(bootstrap)
        self._turn = 0
        self._told: dict[int, Address] = {}
        self._proven: dict[int, Address] = {}
        self._tried: set[Address] = set()
        self._behind: set[Address] = set()

    @property
    def leader_address(self) -> Address | None:
        """Where the leader is said to be, as far as it is known."""
        return self._proven.get(self.leader.id) or self._told.get(self.leader.id)

    def next_address(self) -> Address | None:
        """Whom to ask: the leader, else the next of the bootstrap; none: the round is over."""
        for homes in (self._proven, self._told):
            home = homes.get(self.leader.id)
            if home is not None and home not in self._tried:
                return home
        count = len(self._bootstrap)
        for step in range(count):
            candidate = self._bootstrap[(self._turn + step) % count]
            if candidate not in self._tried:
                return candidate
        return None

    def new_round(self) -> None:
        """Everyone may be asked again, another one first."""
        self._tried.clear()
        self._turn += 1

    def update_endpoints(self, endpoints: Mapping[int, Address]) -> None:
        """Take in where nodes are said to be."""
        self._told.update(endpoints)

    def update_leader(self, told: LeaderAndEpoch) -> bool:
        """Follow a newer epoch, or the leader of this one once it is known; true: it is news.

        An epoch has one leader: another one for the same epoch is not believed.
        """
        newer = told.epoch > self.leader.epoch
        known_now = told.epoch == self.leader.epoch and self.leader.id < 0 <= told.id
        if not (newer or known_now):
            return False
        self.leader = told
        self._tried.clear()
        self._behind.clear()
        return True

    def confirm_leader(self, address: Address) -> None:
        """The leader answered from this address."""
        self._proven[self.leader.id] = address
        self._tried.clear()
        self._behind.clear()

    def mark_tried(self, address: Address) -> None:
        """Nothing to be had from this address in this round."""
        self._tried.add(address)

    def mark_behind(self, address: Address) -> None:
        """The node at this address knows an older epoch only."""
        self._behind.add(address)
        self._forget(address)

    def not_leader(self, address: Address) -> None:
        """The node at this address does not lead, whatever was believed."""
        self._behind.discard(address)
        self._forget(address)

    def failed(self, address: Address) -> None:
        """No usable answer came from this address."""
        self._forget(address)

    @property
    def all_behind(self) -> bool:
        """Whether each bootstrap controller's last answer was that of an older epoch."""
        return self._behind.issuperset(self._bootstrap)

    def reset(self) -> "LeaderLocator":
        """The same addresses, nothing known."""
        return LeaderLocator(self._bootstrap, 0)

    def _forget(self, address: Address) -> None:
        self._tried.add(address)
        self._proven = {id_: home for id_, home in self._proven.items() if home != address}
