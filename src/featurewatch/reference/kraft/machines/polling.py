"""What a replica does as time passes, in each state (``KafkaRaftClient.pollCurrentState``)."""

from featurewatch.reference.kraft.machines.elections import ElectingReplica
from featurewatch.reference.kraft.machines.states import State


class PollingReplica(ElectingReplica):
    """A replica whose timers expire."""

    def _on_tick(self) -> None:
        """Does what the state does as time passes (``pollCurrentState``)."""
        is_due = self._now_ms >= self._deadline_ms
        match self.state:
            case State.LEADER:
                self._lead()
            case State.RESIGNED:
                self._send_end_of_epoch()
                if is_due:
                    self._leave_resigned()
            case State.CANDIDATE:
                self._on_candidate_tick(is_due=is_due)
            case State.PROSPECTIVE if is_due:
                self._lose()
            case State.PROSPECTIVE:
                self._ask_for_votes()
            case _ if is_due and self.is_needed:
                self._stand()
            case State.FOLLOWER:
                is_lost = is_due and self.settings.rules.observers_time_out
                if is_lost:
                    self._look_for_leader()
                else:
                    self._fetch()
            case _:
                self._look_for_leader()

    def _leave_resigned(self) -> None:
        if self.is_needed and not self.settings.rules.has_pre_votes:
            self._stand()
        else:
            self._become_unattached(self.epoch + 1)

    def _on_candidate_tick(self, *, is_due: bool) -> None:
        if self._backoff_until_ms is not None:
            if self._now_ms >= self._backoff_until_ms:
                self._stand()
        elif not is_due:
            self._ask_for_votes()
        elif self.settings.rules.has_pre_votes:
            self._become_prospective()
        else:
            self._back_off()
