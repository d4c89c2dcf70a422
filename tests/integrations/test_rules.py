"""The rules for Prometheus: what they name exists, and each fires and stays silent."""

import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from featurewatch.integrations.alert_kinds import alert_name
from featurewatch.integrations.prometheus.files import ALL_RULES, RulesFormat, rules_file
from featurewatch.integrations.prometheus.rule import AlertingRule
from featurewatch.monitor.rules import RULES
from tests.cli.commands import featurewatch
from tests.integrations.expressions import unknown_names
from tests.integrations.rule_cases import CASES, CLUSTER, RuleCase
from tests.integrations.tools import tool
from tests.paths import ROOT

WATCHDOG = "FeaturewatchWatchdog"
RULES_FILE = "featurewatch.rules.yaml"
TEMPLATE = re.compile(r"\$labels\.(\w+)")


def document(form: RulesFormat, *addresses: str) -> Any:
    """What the file of a format holds."""
    return yaml.safe_load(rules_file(form, *addresses)[1])


def case_of(rule: AlertingRule) -> RuleCase:
    """The series of a rule; those about clusters all have the same form."""
    if rule.name in CASES:
        return CASES[rule.name]
    (kind,) = [kind.name for kind in RULES if alert_name(kind.name) == rule.name]
    labels = f'kafka_cluster="c",rule="{kind}",severity="{rule.severity}",instance="a",job="w"'
    series = f"featurewatch_alerts_firing{{{labels}}}"
    return RuleCase({series: "2x60"}, {series: "0x60"})


def promtool_tests(rules: Iterable[AlertingRule] = ALL_RULES) -> Iterator[dict[str, Any]]:
    """Two tests of promtool for each rule but the watchdog, which has one."""
    for rule in rules:
        case = RuleCase({}, {}, labels="{}") if rule.name == WATCHDOG else case_of(rule)
        grouped = re.findall(r"(\w+)=", case.labels)
        alerts = f'ALERTS{{alertname="{rule.name}",severity="{rule.severity}",alertstate="firing"}}'
        expression = f"count by ({', '.join(grouped)}) ({alerts})"
        samples = [{"labels": case.labels, "value": 1}]
        yield promtool_test(f"{rule.name} fires", case.fires, case.minute, expression, samples)
        if rule.name != WATCHDOG:
            yield promtool_test(f"{rule.name} is silent", case.silent, case.minute, expression, [])


def promtool_test(
    name: str, series: dict[str, str], minute: int, expression: str, samples: list[Any]
) -> dict[str, Any]:
    """A test of one expression at one time."""
    expected = {"expr": expression, "eval_time": f"{minute}m", "exp_samples": samples}
    return {
        "name": name,
        "interval": "1m",
        "input_series": [{"series": key, "values": values} for key, values in series.items()],
        "promql_expr_test": [expected],
    }


def promtool(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs promtool in a directory, to its end."""
    return subprocess.run(
        [tool("promtool"), *arguments], cwd=directory, capture_output=True, text=True, check=False
    )


def write_tests(directory: Path, name: str, rules: str, tests: list[dict[str, Any]]) -> str:
    """Writes tests of the rules in a file, and returns the name of the tests' file."""
    content = {"rule_files": [rules], "evaluation_interval": "5m", "tests": tests}
    (directory / name).write_text(yaml.safe_dump(content))
    return name


def evaluated_by_promtool(
    directory: Path, rules: str, tests: list[dict[str, Any]]
) -> subprocess.CompletedProcess[str]:
    """What promtool says to a rules file and to tests of it, up to what it refuses."""
    (directory / RULES_FILE).write_text(rules)
    checked = promtool(directory, "check", "rules", RULES_FILE)
    if checked.returncode:
        return checked
    return promtool(
        directory, "test", "rules", write_tests(directory, "tests.yaml", RULES_FILE, tests)
    )


def test_each_rule_fires_and_stays_silent(tmp_path: Path) -> None:
    """By Prometheus' own promtool, with the labels that routes need.

    Each is tested in a file without the others, as no rule reads another: promtool would evaluate
    all of them in every test.
    """
    text = rules_file(RulesFormat.PROMETHEUS, "https://runbooks/", "https://page/")[1]
    (tmp_path / RULES_FILE).write_text(text)
    checked = promtool(tmp_path, "check", "rules", RULES_FILE)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    groups = yaml.safe_load(text)["groups"]
    written = [rule for group in groups for rule in group["rules"]]
    assert all(group.keys() == {"name", "rules"} for group in groups)
    assert not any("ALERTS" in rule["expr"] or "record" in rule for rule in written)
    assert {rule["alert"] for rule in written} == {rule.name for rule in ALL_RULES}
    count, files = 0, []
    for name in sorted({rule.name for rule in ALL_RULES}):
        rules = [rule for rule in written if rule["alert"] == name]
        (tmp_path / f"{name}.yaml").write_text(
            yaml.safe_dump({"groups": [{"name": "g", "rules": rules}]})
        )
        tests = [*promtool_tests(rule for rule in ALL_RULES if rule.name == name)]
        files.append(write_tests(tmp_path, f"{name}.tests.yaml", f"{name}.yaml", tests))
        count += len(tests)
    assert count == 2 * len(ALL_RULES) - 1
    tested = promtool(tmp_path, "test", "rules", *files)
    assert tested.returncode == 0, (tested.stdout + tested.stderr)[-3000:]


def test_promtool_notices_a_rule_that_cannot_fire(tmp_path: Path) -> None:
    """The tests above are tests: with another threshold they fail."""
    text = rules_file(RulesFormat.PROMETHEUS)[1]
    broken = text.replace("(featurewatch_cluster_ready) == 0", "(up) == 7")
    tests = [test for test in promtool_tests() if "ClusterNotReady" in test["name"]]
    tested = evaluated_by_promtool(tmp_path, broken, tests)
    assert tested.returncode == 1
    assert "FeaturewatchClusterNotReady" in tested.stdout + tested.stderr


@pytest.mark.parametrize(
    ("names", "shown"), [(["orders"], "orders (c)"), (["c"], "c"), ([], "c")], ids=str
)
def test_a_description_has_the_name_of_the_cluster(
    tmp_path: Path, names: list[str], shown: str
) -> None:
    """And its id alone where it has none, or where nobody exposes names."""
    text = rules_file(RulesFormat.PROMETHEUS, "https://r", "https://p")[1]
    series = {f'featurewatch_cluster_info{{kafka_cluster="c",name="{it}"}}': "1x60" for it in names}
    series["featurewatch_cluster_ready" + CLUSTER] = "0x60"
    rule = "FeaturewatchClusterNotReady"
    annotations = {
        "summary": "The state of a cluster is unknown.",
        "description": f"The worker has not known the state of the Kafka cluster {shown} for "
        "10 minutes.",
        "runbook_url": f"https://r/{rule}.md",
        "page": "https://p/?view=cluster&cluster=c",
    }
    alert = {
        "exp_labels": {"kafka_cluster": "c", "job": "worker", "severity": "warning"},
        "exp_annotations": annotations,
    }
    expected = {"alertname": rule, "eval_time": "30m", "exp_alerts": [alert]}
    test = {
        "interval": "1m",
        "input_series": [{"series": key, "values": values} for key, values in series.items()],
        "alert_rule_test": [expected],
    }
    tested = evaluated_by_promtool(tmp_path, text, [test])
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: f"{rule.name}-{rule.severity}")
def test_a_rule_names_what_exists(rule: AlertingRule) -> None:
    """Its metrics and labels are those of the registries, and its templates use its own labels."""
    assert list(unknown_names(rule.expression)) == []
    assert rule.severity in ("critical", "warning", "none")
    assert rule.summary.endswith(".")
    assert "$" not in rule.summary
    if rule.name != WATCHDOG:
        assert set(TEMPLATE.findall(rule.description)) <= set(
            re.findall(r"(\w+)=", case_of(rule).labels + " " + " ".join(case_of(rule).fires))
        )


@pytest.mark.parametrize(
    ("expression", "unknown"),
    [
        ("featurewatch_alert_firing > 0", ["featurewatch_alert_firing"]),
        ('featurewatch_alerts_firing{cluster="c"}', ["featurewatch_alerts_firing{cluster}"]),
        ("sum by (kafka_cluster, rol) (featurewatch_nodes)", ["(rol)"]),
        ("max(featurewatch_nodes", ["()"]),
        ('featurewatch_nodes{role="(x"} and up', []),
    ],
)
def test_what_no_registry_has_is_found(expression: str, unknown: list[str]) -> None:
    """A misspelt metric or label gives nothing in Prometheus, and no error."""
    assert list(unknown_names(expression)) == unknown


def test_every_alert_rule_has_a_rule_for_each_severity() -> None:
    """None of the worker's alerts is missing in Prometheus."""
    expected = {(alert_name(rule.name), str(s)) for rule in RULES for s in rule.severities}
    assert expected <= {(rule.name, rule.severity) for rule in ALL_RULES}
    assert len({(rule.name, rule.severity) for rule in ALL_RULES}) == len(ALL_RULES)


def test_the_operators_file_holds_the_same_rules() -> None:
    """A PrometheusRule has the groups of the plain file below ``spec``."""
    resource = document(RulesFormat.OPERATOR, "https://r", "https://p")
    assert (resource["apiVersion"], resource["kind"]) == (
        "monitoring.coreos.com/v1",
        "PrometheusRule",
    )
    assert resource["spec"] == document(RulesFormat.PROMETHEUS, "https://r", "https://p")


def test_alerts_lead_to_the_runbook_and_to_the_page() -> None:
    """Both addresses are below those given; without a page there is no link to one."""
    linked = document(RulesFormat.PROMETHEUS, "https://r/x/", "https://p/y/")
    first = linked["groups"][0]["rules"][0]["annotations"]
    assert first["runbook_url"] == "https://r/x/FeaturewatchIncompatibleNode.md"
    assert first["page"].startswith("https://p/y/?view=cluster&cluster={{")
    plain = document(RulesFormat.PROMETHEUS)
    for group in plain["groups"]:
        for rule in group["rules"]:
            assert "page" not in rule["annotations"]
            assert (ROOT / rule["annotations"]["runbook_url"]).is_file()


def test_the_command_writes_the_file(tmp_path: Path) -> None:
    """Its path is printed; the page of the configuration is in the links."""
    (tmp_path / "c.yaml").write_text("web: {external_url: 'https://ops/fw/'}")
    arguments = ("rules", "--out", "here", "--format", "operator", "--config", "c.yaml")
    ended = featurewatch(tmp_path, *arguments, "--runbooks", "https://r")
    assert (ended.returncode, ended.stdout) == (0, "here/featurewatch.prometheusrule.yaml\n")
    text = (tmp_path / "here" / "featurewatch.prometheusrule.yaml").read_text()
    expected = rules_file(RulesFormat.OPERATOR, "https://r", "https://ops/fw/")[1]
    assert text == expected


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "give the directory for the files with --out"),
        (("--out", "x", "--format", "json"), "there is no format json: use prometheus or operator"),
        (("--out", "/proc/none"), "cannot be written"),
    ],
)
def test_wrong_usage_is_one_line(tmp_path: Path, arguments: tuple[str, ...], reason: str) -> None:
    """What is wrong and what to do; exit code 2."""
    ended = featurewatch(tmp_path, "rules", *arguments)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert reason in ended.stderr
