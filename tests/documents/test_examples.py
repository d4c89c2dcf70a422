"""The examples for a pipeline: they are read, and their commands have these options and codes."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.documents import checks
from tests.paths import ROOT

EXAMPLES = ROOT / "examples" / "upgrade"
CLUSTER = "--bootstrap-controller kafka-1:9093 --bootstrap-server kafka-1:9092"


def read(name: str) -> Any:
    """The content of an example."""
    return yaml.safe_load((EXAMPLES / name).read_text())


def test_the_playbook_waits_for_each_node() -> None:
    """One node at a time: the gate, stop, switch, start, the plan; a comment has the plan."""
    (play,) = read("roll.yml")
    assert (play["serial"], play["any_errors_fatal"]) == (1, True)
    assert play["vars"]["cluster"] == CLUSTER
    modules = [next(key for key in task if "ansible." in key) for task in play["tasks"]]
    kinds = [module.rpartition(".")[2] for module in modules]
    assert kinds == ["command", "service", "file", "service", "command"]
    for task in play["tasks"][0], play["tasks"][-1]:
        line = task["ansible.builtin.command"]["cmd"]
        checks.parsed(line.replace("{{ node_id }}", "2").replace("{{ cluster }}", CLUSTER))
    text = (EXAMPLES / "roll.yml").read_text()
    comment = re.sub(r"\\\n#", "", text)
    (plan,) = re.findall(r"^# +(featurewatch upgrade plan .*)$", comment, re.MULTILINE)
    checks.parsed(plan)


@pytest.mark.parametrize(("job", "options"), [("check", "--dry-run"), ("finalize", "--yes")])
def test_the_workflow_checks_first_and_then_asks(job: str, options: str, tmp_path: Path) -> None:
    """The steps are run by a shell, with a featurewatch that prints its arguments and fails."""
    workflow = read("finalize.yml")
    assert workflow["jobs"]["finalize"]["needs"] == "check"
    assert workflow["jobs"]["finalize"]["environment"]
    steps = [step["run"] for step in workflow["jobs"][job]["steps"] if "run" in step]
    line = steps[0].replace("$CLUSTER", workflow["env"]["CLUSTER"])
    checks.parsed(line)
    assert options in line
    program = tmp_path / "featurewatch"
    program.write_text('#!/bin/sh\necho "$@"\nexit 3\n')
    program.chmod(0o755)
    done = subprocess.run(
        ["bash", "-e", "-c", steps[0]],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "CLUSTER": CLUSTER},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 3
    shown = tmp_path / "finalize.json"
    printed = shown.read_text() if shown.exists() else done.stdout
    assert printed.startswith("upgrade finalize --plan plan.yaml")
    assert printed.rstrip().endswith(CLUSTER)
