"""``featurewatch upgrade`` on a running cluster of 3.9.1: the plan, its status, a restart."""

import json
from pathlib import Path

import pytest
import yaml

from featurewatch.stack.kafka.cluster import Cluster
from tests.cli.commands import featurewatch
from tests.waiting import eventually

pytestmark = pytest.mark.stack


def test_a_plan_is_made_and_followed(quorum_391: Cluster, tmp_path: Path) -> None:
    """Nothing is in the way; the first node is a controller that is not active; the gate opens.

    A node that does not exist is refused at once, and a plan edited by hand is noticed.
    """
    at = (
        *("--bootstrap-controller", quorum_391.controllers),
        *("--bootstrap-server", quorum_391.bootstrap_servers),
    )
    made = featurewatch(tmp_path, "upgrade", "plan", "--target", "4.4", "--out", "plan.yaml", *at)
    assert (made.returncode, made.stderr) == (0, "")
    assert "POINT OF NO RETURN" in made.stdout
    plan = yaml.safe_load((tmp_path / "plan.yaml").read_text())
    assert (plan["cluster"], plan["releases"]) == (quorum_391.cluster_id, ["3.9"])
    ids = [node.id for node in quorum_391.spec.nodes]
    assert (sorted(plan["controllers"]), plan["brokers"]) == (ids, [])

    told = featurewatch(tmp_path, "upgrade", "status", "--plan", "plan.yaml", "--json", *at)
    assert (told.returncode, told.stderr) == (0, "")
    status = json.loads(told.stdout)
    assert (status["current"], status["next_node"]) == ("roll-controllers", plan["controllers"][0])
    assert status["changed"] == []

    check = ("upgrade", "check", "restart", "--node", str(status["next_node"]), "--json", *at)
    reports = []

    def may_restart() -> bool:
        done = featurewatch(tmp_path, *check)
        reports.append(json.loads(done.stdout))
        return done.returncode == 0

    # Other tests of the shared cluster may be moving partitions, or have made some of one replica.
    assert eventually(may_restart) or {one["name"] for one in reports[-1]["checks"] if one["verdict"] == "no"} <= {"unreplicated", "min-isr", "reassignments"}  # fmt: skip # noqa: E501
    quorum = next(one for one in reports[-1]["checks"] if one["name"] == "quorum")
    assert quorum["text"] == "2 of 3 voters stay, 2 are needed"

    wrong = featurewatch(tmp_path, "upgrade", "check", "restart", "--node", "99", "--wait", *at)
    assert wrong.returncode == 3
    assert "there is no node 99" in wrong.stdout

    text = (tmp_path / "plan.yaml").read_text().replace("soak_hours: 24.0", "soak_hours: 0.0")
    (tmp_path / "plan.yaml").write_text(text)
    edited = featurewatch(tmp_path, "upgrade", "status", "--plan", "plan.yaml", *at)
    assert "the plan was edited after featurewatch wrote it" in edited.stdout

    early = featurewatch(
        tmp_path, "upgrade", "finalize", "--plan", "plan.yaml", "--dry-run", "--accept", "plan", *at
    )
    assert early.returncode == 3
    assert "not known to run Kafka 4.4" in early.stdout
    assert "Nothing was sent, nothing is changed." in early.stdout
