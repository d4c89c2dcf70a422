"""The manifests that helm makes of the chart, for several values; skipped where helm is missing."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from featurewatch.cli.config.settings import Settings
from featurewatch.integrations.grafana.files import dashboard_files
from featurewatch.integrations.prometheus.files import rules_document
from scripts.generators.chart import CHART
from tests.deploy.chart import (
    VALUES,
    check_with_kubernetes,
    helm,
    merged_values,
    of_kind,
    pods,
    rendered,
    settings_of,
    template,
)

CUSTOM = "monitoring.coreos.com/"
SECRETS = "/etc/featurewatch/secrets/"
PATHS = {
    "bus": {"watch", "worker", "web", "notify"},
    "clusters": {"watch"},
    "notify": {"notify"},
}
"""Who reads the files that a section of the configuration names."""

pytestmark = pytest.mark.parametrize("name", VALUES)


def paths_below(node: object) -> list[str]:
    """Every path of a Secret in a part of the configuration."""
    if isinstance(node, dict):
        return [path for value in node.values() for path in paths_below(value)]
    if isinstance(node, list):
        return [path for value in node for path in paths_below(value)]
    return [str(node)] if str(node).startswith(SECRETS) else []


def test_helm_finds_nothing_to_remark(name: str) -> None:
    """`helm lint --strict`."""
    done = helm("lint", "--strict", CHART, "--values", VALUES[name], "--kube-version", "1.37.0")
    assert done.returncode == 0, done.stdout + done.stderr


def test_kubernetes_accepts_the_manifests(name: str) -> None:
    """Every manifest follows Kubernetes' schema, oldest and newest, without unknown fields."""
    documents = rendered(name)
    names = [(document["kind"], document["metadata"]["name"]) for document in documents]
    assert len(names) == len(set(names))
    for document in documents:
        if not document["apiVersion"].startswith(CUSTOM):
            check_with_kubernetes(document)


def test_names_leave_room_for_what_kubernetes_adds(name: str) -> None:
    """A pod of a set is labelled with the set's name and a hash of 10 characters."""
    documents = rendered(name)
    sets = of_kind(documents, "StatefulSet")
    assert sets
    assert all(len(item["metadata"]["name"]) + 11 <= 63 for item in sets)
    assert all(len(item["metadata"]["name"]) <= 63 for item in of_kind(documents, "Service"))


def test_the_product_accepts_its_configuration(name: str, tmp_path: Path) -> None:
    """The processes listen on all addresses, on the default ports, and write below /var/lib."""
    settings = settings_of(rendered(name), tmp_path)
    web, default = settings.web, Settings().web
    assert (web.host, web.page_host) == ("0.0.0.0", "0.0.0.0")  # noqa: S104 - in a pod
    for port in ("source_port", "worker_port", "page_port", "notify_port"):
        assert getattr(web, port) == getattr(default, port)
    assert settings.worker.data_directory == Path("/var/lib/featurewatch")
    if name == "everything":
        assert settings.clusters[0].max_snapshot_bytes == 4294967296
        assert settings.readiness.ghost_after_s == 1800.5
        assert settings.bus.prefix == "monitoring.featurewatch"
        settings.page_settings()


def test_pods_are_hardened(name: str) -> None:
    """Nothing runs as root, writes to the image, has a capability or a token, or lacks a limit."""
    found = list(pods(rendered(name)))
    assert {"worker", "test"} <= {process for process, _ in found}
    for process, pod in found:
        assert pod["automountServiceAccountToken"] is False
        security = pod["securityContext"]
        assert security["runAsNonRoot"] is True
        assert security["runAsUser"] == 65532
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert container["resources"]["limits"].keys() == {"memory"}
        if process != "test":
            assert {"/tmp"} <= {mount["mountPath"] for mount in container["volumeMounts"]}
            own = [volume for volume in pod["volumes"] if "emptyDir" in volume]
            assert all(volume["emptyDir"]["sizeLimit"] for volume in own)


def test_probes_reach_the_process(name: str, tmp_path: Path) -> None:
    """They ask for the port on which the process listens, and only readiness for more than life."""
    documents = rendered(name)
    web = settings_of(documents, tmp_path).web
    ports = {
        "watch": web.source_port,
        "worker": web.worker_port,
        "web": web.page_port,
        "notify": web.notify_port,
    }
    for process, pod in pods(documents):
        if process == "test":
            continue
        (container,) = pod["containers"]
        assert container["args"] == [process]
        assert container["ports"] == [{"name": "http", "containerPort": ports[process]}]
        probes = {kind: container[f"{kind}Probe"] for kind in ("startup", "readiness", "liveness")}
        asked = {kind: probe["httpGet"] for kind, probe in probes.items()}
        assert {get["port"] for get in asked.values()} == {"http"}
        scheme = "HTTPS" if name == "everything" else "HTTP"
        assert {get["scheme"] for get in asked.values()} == {scheme}
        assert {kind: get["path"] for kind, get in asked.items()} == {
            "startup": "/healthz",
            "readiness": "/readyz",
            "liveness": "/healthz",
        }


def test_each_file_of_the_configuration_is_mounted(name: str) -> None:
    """A process finds what the sections that it reads name; the chart makes no Secret."""
    documents = rendered(name)
    (text,) = [
        document["data"]["featurewatch.yaml"]
        for document in of_kind(documents, "ConfigMap")
        if "featurewatch.yaml" in document["data"]
    ]
    config = yaml.safe_load(text)
    for process, pod in pods(documents):
        if process == "test":
            continue
        (container,) = pod["containers"]
        mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        assert set(mounts.values()) <= volumes.keys()
        for section, readers in PATHS.items():
            for path in paths_below(config.get(section)) if process in readers else ():
                secret = str(Path(path).parent)
                volume = volumes[mounts[secret]]
                assert volume["secret"]["secretName"] == Path(secret).name
    assert of_kind(documents, "Secret") == []


def test_a_change_of_the_configuration_restarts_the_pods(name: str) -> None:
    """The pods carry a digest of it."""
    before = _digests(template(VALUES[name]).stdout)
    after = _digests(template(VALUES[name], "--set", "config.bus.partitions=16").stdout)
    assert len(before) == len(after) == 1
    assert before != after


def _digests(text: str) -> set[str]:
    digests = set()
    for document in yaml.safe_load_all(text):
        if document and document["kind"] in ("Deployment", "StatefulSet"):
            pod = document["spec"]["template"]
            digests.add(pod["metadata"]["annotations"]["checksum/config"])
    return digests


def test_services_and_budgets_select_pods(name: str) -> None:
    """Each selects one process of this release; only several pods have a budget."""
    documents = rendered(name)
    controllers = {
        document["metadata"]["labels"]["app.kubernetes.io/component"]: document
        for document in (*of_kind(documents, "Deployment"), *of_kind(documents, "StatefulSet"))
    }
    labels = {
        process: controller["spec"]["template"]["metadata"]["labels"]
        for process, controller in controllers.items()
    }
    for process, controller in controllers.items():
        assert controller["spec"]["selector"]["matchLabels"].items() <= labels[process].items()
    services = of_kind(documents, "Service")
    assert len(services) == len(controllers)
    selectors = [service["spec"]["selector"] for service in services]
    budgets = of_kind(documents, "PodDisruptionBudget")
    selectors += [budget["spec"]["selector"]["matchLabels"] for budget in budgets]
    for selector in selectors:
        (process,) = [name for name, own in labels.items() if selector.items() <= own.items()]
        assert selector["app.kubernetes.io/component"] == process
    several = {name for name, item in controllers.items() if item["spec"]["replicas"] > 1}
    assert {budget["metadata"]["name"].rpartition("-")[2] for budget in budgets} == several
    if "watch" in controllers:
        assert controllers["watch"]["spec"]["replicas"] == 1
        assert controllers["watch"]["spec"]["strategy"] == {"type": "Recreate"}
    (worker,) = of_kind(documents, "StatefulSet")
    assert worker["spec"]["serviceName"] in {service["metadata"]["name"] for service in services}


def test_the_rules_are_those_of_the_command(name: str) -> None:
    """With the links that the values give; those about clusters are left to `notify` if it runs.

    A process that is not enabled is not missed.
    """
    rules = of_kind(rendered(name), "PrometheusRule")
    if name == "minimal":
        assert rules == []
        return
    (rule,) = rules
    runbooks = {"everything": "https://wiki.example.org/featurewatch"}.get(name, "docs/runbooks")
    expected = rules_document(runbooks)
    if name != "secured":
        expected["groups"] = [
            group for group in expected["groups"] if group["name"] != "featurewatch-clusters"
        ]
        assert len(expected["groups"]) == 1
    if name == "many":
        (group,) = expected["groups"]
        kept = [item for item in group["rules"] if item["alert"] != "FeaturewatchWatchDown"]
        assert len(kept) == len(group["rules"]) - 1
        group["rules"] = kept
    assert rule["spec"] == expected


def test_monitors_and_dashboards_are_off_until_they_are_wanted(name: str) -> None:
    """With everything on, they follow the values and what `featurewatch dashboards` writes."""
    documents = rendered(name)
    monitors = of_kind(documents, "ServiceMonitor")
    boards = [
        item for item in of_kind(documents, "ConfigMap") if "dashboards" in str(item["metadata"])
    ]
    if name != "everything":
        assert (monitors, boards) == ([], [])
        return
    ((monitor,), (board,)) = monitors, boards
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["endpoints"] == [
        {
            "port": "http",
            "path": "/metrics",
            "scheme": "https",
            "tlsConfig": {"insecureSkipVerify": True},
            "interval": "15s",
            "scrapeTimeout": "10s",
            "honorLabels": True,
            "relabelings": [{"sourceLabels": ["__meta_kubernetes_pod_name"], "targetLabel": "pod"}],
            "metricRelabelings": [
                {"sourceLabels": ["__name__"], "regex": "python_.*", "action": "drop"}
            ],
        }
    ]
    selected = monitor["spec"]["selector"]
    scraped = [
        service["metadata"]["labels"]
        for service in of_kind(documents, "Service")
        if selected["matchLabels"].items() <= service["metadata"]["labels"].items()
        and service["metadata"]["labels"]["app.kubernetes.io/component"]
        in selected["matchExpressions"][0]["values"]
    ]
    assert {labels["app.kubernetes.io/component"] for labels in scraped} == {
        "watch",
        "worker",
        "notify",
    }
    assert board["metadata"]["namespace"] == "grafana"
    assert board["metadata"]["labels"]["grafana_dashboard"] == "yes"
    assert board["metadata"]["annotations"] == {"grafana_folder": "Kafka"}
    written = dashboard_files()
    assert board["data"] == {
        path.removeprefix("dashboards/"): text
        for path, text in written.items()
        if path.startswith("dashboards/")
    }
    assert all(json.loads(text)["uid"] for text in board["data"].values())
    (extra,) = [item for item in documents if item["metadata"]["name"] == "release-extra"]
    assert extra["data"] == {"prefix": "monitoring.featurewatch"}


def test_the_policy_lets_in_who_is_named(name: str) -> None:
    """Beside this release's pods, only those in the values."""
    policies = of_kind(rendered(name), "NetworkPolicy")
    if name == "many":
        assert policies == []
        return
    (policy,) = policies
    metrics, page = policy["spec"]["ingress"]
    assert {port["port"] for port in metrics["ports"]} == {9584, 9778, 9786}
    assert {port["port"] for port in page["ports"]} == {9780}
    assert len(metrics["from"]) == 2
    assert len(page["from"]) == (2 if name == "everything" else 1)
    assert ("egress" in policy["spec"]) == (name == "everything")


def test_several_pods_are_spread(name: str) -> None:
    """Over the machines, unless the values say how."""
    documents = rendered(name)
    counts = {
        item["metadata"]["labels"]["app.kubernetes.io/component"]: item["spec"]["replicas"]
        for item in (*of_kind(documents, "Deployment"), *of_kind(documents, "StatefulSet"))
    }
    for process, pod in pods(documents):
        spread: list[Any] = pod.get("topologySpreadConstraints", [])
        if name == "everything" and process != "test":
            assert [item["topologyKey"] for item in spread] == ["zone"]
        else:
            assert bool(spread) == (counts.get(process, 1) > 1)


def test_learned_releases_are_mounted_where_the_configuration_names_them(
    name: str, tmp_path: Path
) -> None:
    """As files of a ConfigMap, whose digest restarts the pods; without any nothing is mounted."""
    documents = rendered(name)
    releases = merged_values(VALUES[name])["releases"]
    maps = {item["metadata"]["name"]: item["data"] for item in of_kind(documents, "ConfigMap")}
    mounted = [name for name in maps if name.endswith("-releases")]
    assert len(mounted) == bool(releases)
    sets = [*of_kind(documents, "StatefulSet"), *of_kind(documents, "Deployment")]
    for annotations in (item["spec"]["template"]["metadata"]["annotations"] for item in sets):
        assert ("checksum/releases" in annotations) == bool(releases)
    if not releases:
        return
    (config_map,) = mounted
    assert {file: json.loads(text) for file, text in maps[config_map].items()} == {
        f"{release}.json": json.loads(text) for release, text in releases.items()
    }
    directory = str(settings_of(documents, tmp_path).releases.directory)
    for pod in (item["spec"]["template"]["spec"] for item in sets):
        (volume,) = (
            volume["name"]
            for volume in pod["volumes"]
            if volume.get("configMap", {}).get("name") == config_map
        )
        for container in pod["containers"]:
            mounts = {it["name"]: it["mountPath"] for it in container["volumeMounts"]}
            assert mounts[volume] == directory
