"""What is misspelt is answered with what was probably meant, for every kind of name."""

import os
import re
import subprocess
import sys

import pytest

from featurewatch.reference.zookeeper.machines.requests import UpdateResponse
from tests.admin.scripted import Node, ScriptedCluster

STEP = "rehearse --bootstrap-controller a:1 --step"
CASES = {
    "featres": "No such command 'featres'. Did you mean 'features'?",
    "features descrbe": "No such command 'descrbe'. Did you mean 'describe'?",
    "fleet drft": "No such command 'drft'. Did you mean 'drift'?",
    "state --confg x": "No such option: --confg",
    "topics --bootstrap-server a:1 list": "`featurewatch topics COMMAND --bootstrap-server ...`",
    "--bus a:1 state": "The options of a command follow its name, as in `featurewatch COMMAND",
    "features --jsn describe": "No such option: --jsn",
    "features feature-dependencies --feature group.versoin=1": "did you mean group.version?",
    f"{STEP} upgrad:metadata.version=25": "did you mean upgrade?",
    f"{STEP} upgrade:metadta.version=25": (
        "Kafka has no feature metadta.version: did you mean metadata.version?"
    ),
}


def run(*arguments: str) -> tuple[int, str]:
    """The exit code and stderr of a command."""
    command = [sys.executable, "-m", "featurewatch", *arguments]
    environment = {**os.environ, "COLUMNS": "200"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, timeout=60
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("line", CASES)
def test_a_misspelt_name_is_answered_with_the_right_one(line: str) -> None:
    """Commands, options, features and steps."""
    code, errors = run(*line.split())
    assert code in (1, 2)
    assert CASES[line] in errors
    assert "Traceback" not in errors


def test_a_name_that_is_close_to_none_has_no_suggestion() -> None:
    """A guess that is wrong is worse than none."""
    code, errors = run("xyzzy")
    assert (code, "mean" in errors) == (2, False)


def test_a_feature_that_a_cluster_refuses_may_be_misspelt() -> None:
    """The cluster's own refusal comes first, because it may have custom features."""
    refuse = UpdateResponse(message="no", error=95)  # type: ignore[arg-type]
    with ScriptedCluster(Node(script=lambda _: refuse)) as cluster:
        code, errors = run(
            *("features", "--bootstrap-server", str(cluster.address())),
            *("upgrade", "--feature", "group.versoin=1", "--yes"),
        )
    assert code == 1
    assert re.search("no feature group.versoin: did you mean group.version", errors), errors
