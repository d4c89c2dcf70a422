"""The pipeline on a Spark cluster: the wheel, submitted to a master with two workers."""

import contextlib
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

import pytest
import yaml

from featurewatch.pipeline.audit.audit import audit
from featurewatch.pipeline.gold.tables import GOLD
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import MESSAGES
from featurewatch.pipeline.spark.java import java_home
from featurewatch.pipeline.spark.session import BRIEF_JVM, is_submitted
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.codec.outputs import encode_output
from featurewatch.streams.topics import ALERTS, EPOCHS, FEATURE_CHANGES, METADATA_LOG
from tests.paths import ROOT, SRC
from tests.pipeline.audit.lakes import Topics, history, work
from tests.pipeline.filling import put, rows
from tests.pipeline.gold.parity import fill_tables
from tests.pipeline.spark.standalone import DEADLINE_S, SMALL, Standalone
from tests.processes import Process, wait_ready


def installed(directory: Path) -> Path:
    """Builds the wheel of this repository and unpacks it into a directory."""
    source = directory / "source"
    copytree(SRC, source / "src", ignore=ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (source / name).write_bytes((ROOT / name).read_bytes())
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(directory)]
    subprocess.run([*build, str(source)], check=True, capture_output=True)
    site = directory / "site"
    with zipfile.ZipFile(next(directory.glob("featurewatch-*.whl"))) as wheel:
        wheel.extractall(site)
    return site


@pytest.fixture
def standalone(tmp_path: Path, jars: list[Path]) -> Iterator[Standalone]:
    """A running cluster; if Spark cannot run here, the test is skipped."""
    assert jars
    cluster = Standalone(tmp_path)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def submit(cluster: Standalone, site: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Runs a command of the pipeline on the cluster, with the given packages."""
    options = {**SMALL, "spark.executorEnv.PYTHONPATH": str(site)}
    env = {
        **os.environ,
        "PYTHONPATH": str(site),
        "FEATUREWATCH_PYTHON": sys.executable,
        "FEATUREWATCH_SPARK_OPTIONS": " ".join(f"--conf {k}={v}" for k, v in options.items()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_HOME": str(java_home()),
        "JDK_JAVA_OPTIONS": BRIEF_JVM,
    }
    script = ROOT / "deploy" / "spark" / "submit.sh"
    return subprocess.run(
        ["sh", script, cluster.master, *command],
        env=env,
        cwd=cluster.directory,
        capture_output=True,
        text=True,
        timeout=550,
        check=False,
    )


def published_ids(bus: BusSettings) -> set[str]:
    """The ids of the outputs on the topics so far."""
    with contextlib.closing(TopicReader(bus, FEATURE_CHANGES, ALERTS, EPOCHS)) as reader:
        headers = [dict(message.headers() or []) for message in reader.read_existing()]
    ids = [header["ce_id"] for header in headers]
    return {id_.decode() for id_ in ids if isinstance(id_, bytes)}


@pytest.mark.nightly
@pytest.mark.stack
def test_gold_of_a_cluster_is_that_of_this_process(
    lake: Lake, own_bus: Callable[[], BusSettings], standalone: Standalone, tmp_path: Path
) -> None:
    """The wheel fills a lake on two workers, from real topics to gold, and its tables equal those
    that this process makes of the same bronze. The audit finds no difference to the outputs of a
    real worker on these topics."""
    bus = own_bus()
    ensure_topics(bus)
    published = [event for seed in (1, 2) for event in history(seed) if event[1] is METADATA_LOG]
    put(bus, [event for _, _, event in published])
    outputs = [encode_output(output) for output, _ in work(Topics().publish(published))]
    expected = {dict(message.headers)["ce_id"].decode() for message in outputs}
    on_bus = ["--bus", bus.bootstrap_servers, "--prefix", bus.prefix]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEATUREWATCH_BUS__PARTITIONS", str(bus.partitions))
        patch.setenv("FEATUREWATCH_WORKER__SILENT_AFTER_S", "600")
        worker = Process("worker", ["worker", *on_bus], tmp_path)
    worker.start()
    try:
        site = installed(tmp_path)
        wait_ready([worker])
        deadline = time.monotonic() + DEADLINE_S
        while not expected <= published_ids(bus):
            assert time.monotonic() < deadline
            time.sleep(0.2)
    finally:
        worker.kill()
    remote = Lake(lake.session, str(tmp_path / "there"))
    done = submit(standalone, site, "run", "--once", "--lake", remote.root, *on_bus)
    assert done.returncode == 0, done.stdout[-2500:] + done.stderr[-500:]
    used = [[*(tmp_path / name).glob("app-*/*")] for name in ("one", "two")]
    assert all(used), "an executor on each worker"
    lake.append(MESSAGES, remote.read(MESSAGES))
    fill_tables(lake)
    for table in GOLD:
        assert rows(remote, table) == rows(lake, table), table.name
    report = audit(remote, late_s=300.0)
    assert (report.differences, report.is_conclusive) == ((), True)
    assert report.count("equal") == len(expected)


def test_the_jvm_of_spark_submit_is_known() -> None:
    """Only a process that spark-submit started finds a JVM."""
    assert is_submitted({"PYSPARK_GATEWAY_PORT": "4711"})
    assert not is_submitted({"PYSPARK_PYTHON": "python3"})


@pytest.fixture
def manifests() -> list[dict[str, Any]]:
    """All manifests for Kubernetes."""
    return [
        manifest
        for file in sorted((ROOT / "deploy" / "kubernetes").glob("spark-*.yaml"))
        for manifest in yaml.safe_load_all(file.read_text())
    ]


def pods_in(manifests: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The templates of the pods, by the kind of their manifest."""
    return {
        manifest["kind"]: manifest["spec"]["template"]
        if manifest["kind"] == "Deployment"
        else manifest["spec"]["jobTemplate"]["spec"]["template"]
        for manifest in manifests
        if manifest["kind"] in ("Deployment", "CronJob")
    }


def spark_options(manifests: list[dict[str, Any]]) -> dict[str, str]:
    """The options with which the driver is submitted."""
    (container,) = pods_in(manifests)["Deployment"]["spec"]["containers"]
    (text,) = (
        variable["value"]
        for variable in container["env"]
        if variable["name"] == "FEATUREWATCH_SPARK_OPTIONS"
    )
    pairs = (option.strip().partition("=") for option in text.split("--conf") if option.strip())
    return {name: value for name, _, value in pairs}


def test_the_form_for_kubernetes_runs_what_there_is(manifests: list[dict[str, Any]]) -> None:
    """Every account, claim and service that a manifest names exists, and the commands are the
    pipeline's, with the entry point of the image."""
    names = {(manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests}
    assert len(names) == len(manifests)
    pods = {kind: template["spec"] for kind, template in pods_in(manifests).items()}
    assert {*pods} == {"Deployment", "CronJob"}
    image = (ROOT / "deploy" / "kubernetes" / "spark.Dockerfile").read_text()
    for pod in pods.values():
        assert ("ServiceAccount", pod["serviceAccountName"]) in names
        for volume in pod["volumes"]:
            if "secret" in volume:
                continue
            assert ("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]) in names
        (container,) = pod["containers"]
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in pod["volumes"]}
        command = container["command"]
        assert Path(command[0]).name == "submit.sh"
        assert Path(command[0]).parent.as_posix() in image
        assert command[2] in ("run", "audit")
        lake = command[command.index("--lake") + 1]
        assert lake.startswith(container["volumeMounts"][0]["mountPath"])
    (service,) = [
        manifest["metadata"]["name"] for manifest in manifests if manifest["kind"] == "Service"
    ]
    assert spark_options(manifests)["spark.driver.host"] == service


def test_driver_and_executors_on_kubernetes_authenticate_each_other(
    manifests: list[dict[str, Any]],
) -> None:
    """By a secret that the document creates, mounted in both; what they send and spill is
    encrypted."""
    options = spark_options(manifests)
    for name in ("authenticate", "network.crypto.enabled", "io.encryption.enabled"):
        assert options[f"spark.{name}"] == "true"
    pod = pods_in(manifests)["Deployment"]["spec"]
    (volume,) = (volume for volume in pod["volumes"] if "secret" in volume)
    (mount,) = (
        mount for mount in pod["containers"][0]["volumeMounts"] if mount["name"] == volume["name"]
    )
    secret, directory = volume["secret"]["secretName"], mount["mountPath"]
    assert options[f"spark.kubernetes.executor.secrets.{secret}"] == directory
    key = options["spark.authenticate.secret.file"].removeprefix(f"{directory}/")
    create = f"kubectl create secret generic {secret} --from-literal={key}="
    assert create in (ROOT / "docs" / "how-to" / "spark-cluster.md").read_text()
    assert not any(manifest["kind"] == "Secret" for manifest in manifests)


def test_only_the_pods_of_the_pipeline_connect_to_each_other(
    manifests: list[dict[str, Any]],
) -> None:
    """Each pod has a policy; driver and executors accept each other, on the ports that the driver
    is submitted with, and nobody else."""
    options = spark_options(manifests)
    driver_port, blocks_port = (
        int(options[f"spark.{name}.port"]) for name in ("driver", "blockManager")
    )
    driver, audit = (
        template["metadata"]["labels"]["app"]
        for _, template in sorted(pods_in(manifests).items(), reverse=True)
    )
    executor = options["spark.kubernetes.executor.label.app"]
    accepted = {}
    for spec in (m["spec"] for m in manifests if m["kind"] == "NetworkPolicy"):
        assert spec["policyTypes"] == ["Ingress"]
        accepted[spec["podSelector"]["matchLabels"]["app"]] = [
            (
                [peer["podSelector"]["matchLabels"]["app"] for peer in rule["from"]],
                [port["port"] for port in rule["ports"]],
            )
            for rule in spec.get("ingress", [])
        ]
    assert accepted == {
        driver: [([executor], [driver_port, blocks_port])],
        executor: [([driver, executor], [blocks_port])],
        audit: [],
    }
