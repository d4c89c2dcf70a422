"""What the service manager learns of a process."""

from featurewatch.common.service_state import MAX_STATUS_CHARS, ServiceState, reasons_of


def test_a_process_is_ready_when_its_parts_are() -> None:
    """A required part that has not begun is not ready, and neither is one with a reason."""
    state, reasons = ServiceState(), ["3 messages left"]
    assert state.readiness(["worker"]).status == "not ready: worker: it has not begun"
    state.add_part("worker", lambda: reasons, lambda: "done")
    assert state.readiness(["worker"]).status == "not ready: worker: 3 messages left"
    reasons.clear()
    assert state.readiness(["worker"]).is_ready
    state.add_part("page", lambda: ["the topics are being read"], lambda: "done")
    assert not state.readiness(["worker"]).is_ready
    state.remove_part("page")
    assert state.readiness(["worker"]).status == "ready"
    state.remove_part("page")


def test_a_status_is_one_bounded_line() -> None:
    """systemd shows it in `systemctl status`."""
    state = ServiceState()
    state.add_part("sources", lambda: ["a\nb" * 5_000], lambda: "done")
    status = state.readiness([]).status
    assert len(status) == MAX_STATUS_CHARS + 3
    assert "\n" not in status


def test_reasons_are_those_of_readyz() -> None:
    """Of sources, of a worker, of tasks, and of the page."""
    source = {"cluster": "c", "source": "kraft", "state": "stalled", "reason": "no quorum"}
    body = {"ready": False, "waiting": (source, "topic: 3 left"), "tasks": ["reading failed"]}
    assert reasons_of(body) == ["c: kraft: stalled: no quorum", "topic: 3 left", "reading failed"]
    assert reasons_of({"ready": False, "reason": "being read"}) == ["being read"]
    assert reasons_of({"ready": True, "waiting": []}) == []


def test_a_loop_that_does_not_come_round_is_stuck() -> None:
    """Unless it waits for something else; then its time begins when that ends."""
    now_s, is_waiting = [0.0], [False]
    state = ServiceState(lambda: now_s[0])
    with state.loop("the reading", 10, lambda: is_waiting[0]) as loop:
        now_s[0] = 10.0
        assert state.stuck() == []
        now_s[0] = 11.0
        assert state.stuck() == ["the reading has made no progress for 11 s"]
        loop.turn()
        assert state.stuck() == []
        is_waiting[0] = True
        now_s[0] = 1_000.0
        assert state.stuck() == []
        is_waiting[0] = False
        now_s[0] = 1_010.0
        assert state.stuck() == []
        now_s[0] = 1_010.5
        assert state.stuck() == ["the reading has made no progress for 10 s"]
    assert state.stuck() == []
