"""The register: what the documents show and no test runs as it is written, with the reason.

Every other command line is run by `test_pages`.
"""

import re
from dataclasses import dataclass
from typing import Final

from tests.documents import checks
from tests.documents.checks import Check, tested_by


@dataclass(frozen=True, slots=True)
class Entry:
    """A command line or a shown text by its beginning, why it is not run, and what is checked.

    ``pages`` and ``begins`` are regular expressions.
    """

    pages: str
    begins: str
    reason: str
    check: Check

    def covers(self, page: str, text: str) -> bool:
        """Whether it is about this line or block of a page."""
        return bool(re.fullmatch(self.pages, page) and re.match(self.begins, text))


NO_ENGINE: Final = "it needs a container engine"
NO_CLUSTER: Final = "it needs a Kubernetes cluster"
INSTALLS: Final = "it installs packages from the index, or changes the reader's machine"
LONG: Final = "it takes minutes to hours"
ANY: Final = r".*"

NOT_RUN: Final = (
    Entry(
        r"docs/runbooks/.*",
        r"amtool alert",
        "it needs an Alertmanager with alerts",
        tested_by("tests/integrations/test_receivers_doc.py::test_alertmanager_accepts_a_recipe"),
    ),
    Entry(ANY, r"make ", LONG, checks.made),
    Entry(ANY, r"pipx install", INSTALLS, checks.extras),
    Entry(r"docs/how-to/read-the-lake\.md", r"pip install", INSTALLS, checks.syntax),
    Entry(
        r"docs/how-to/read-the-lake\.md",
        r"python examples/lake/query\.py",
        "it is run on another lake",
        tested_by(
            "tests/pipeline/lake/test_open_readers.py::"
            "test_the_command_of_the_page_prints_an_answer",
            checks.syntax,
        ),
    ),
    Entry(
        r"docs/how-to/(?:follow-a-cluster|spark-cluster)\.md",
        r"python\S* -m pip wheel",
        INSTALLS,
        tested_by(
            "tests/test_packaging.py::test_the_wheel_and_the_sdist_hold_the_files_of_the_package"
        ),
    ),
    Entry(
        r"docs/how-to/follow-a-cluster\.md",
        r"python3\.11 -m venv|environment/bin/pip",
        INSTALLS,
        tested_by("tests/test_packaging.py::test_an_archive_without_links_installs", checks.syntax),
    ),
    Entry(
        r"docs/how-to/install\.md|docs/how-to/spark-cluster\.md",
        r"docker build",
        NO_ENGINE,
        tested_by("tests/deploy/test_image.py::test_hadolint_finds_nothing", checks.files),
    ),
    Entry(ANY, r"docker push", NO_ENGINE, checks.syntax),
    Entry(
        r"docs/how-to/client\.md",
        r"featurewatch schemas --register",
        "it needs a schema registry",
        tested_by(
            "tests/integrations/test_schema_registry.py::"
            "test_each_schema_is_registered_under_the_name_of_its_topic",
            checks.syntax,
        ),
    ),
    Entry(
        r"docs/how-to/install\.md",
        r"docker compose",
        NO_ENGINE,
        tested_by("tests/deploy/test_compose.py::test_compose_accepts_the_file", checks.compose),
    ),
    Entry(
        r"docs/how-to/install\.md",
        r"helm (?:install|test)",
        NO_CLUSTER,
        tested_by(
            "tests/deploy/test_chart.py::test_kubernetes_accepts_the_manifests", checks.syntax
        ),
    ),
    Entry(
        r"docs/how-to/admin\.md",
        r"featurewatch cluster compare-strimzi --namespace",
        NO_CLUSTER,
        tested_by(
            "tests/integrations/test_kubernetes.py::test_the_command_reads_the_api_server",
            checks.parsed,
        ),
    ),
    Entry(ANY, r"kubectl create secret", NO_CLUSTER, checks.kubectl),
    Entry(
        r"docs/how-to/spark-cluster\.md",
        r"kubectl apply",
        NO_CLUSTER,
        tested_by(
            "tests/deploy/test_spark_manifests.py::test_kubernetes_accepts_the_manifests",
            checks.files,
        ),
    ),
    Entry(
        r"docs/how-to/install\.md",
        r"sudo systemctl|systemctl|sudo install|sudo .*(?:venv|pip install)",
        INSTALLS,
        tested_by("tests/deploy/test_systemd.py::test_systemd_accepts_the_unit", checks.syntax),
    ),
    Entry(
        r"docs/how-to/spark-cluster\.md",
        r"FEATUREWATCH_PYTHON=|  *FEATUREWATCH_ARCHIVE=|FEATUREWATCH_ARCHIVE=",
        "it needs a Spark cluster on other machines",
        tested_by(
            "tests/pipeline/spark/test_cluster.py::test_gold_of_a_cluster_is_that_of_this_process",
            checks.files,
        ),
    ),
    Entry(
        r"docs/how-to/spark-cluster\.md",
        r"pip install venv-pack",
        INSTALLS,
        checks.syntax,
    ),
    Entry(
        r"docs/how-to/spark-cluster\.md",
        r"export SPARK_HOME|\$SPARK_HOME",
        "master and worker run in the background until they are killed",
        tested_by(
            "tests/pipeline/spark/test_cluster.py::test_gold_of_a_cluster_is_that_of_this_process",
            checks.syntax,
        ),
    ),
    Entry(
        r"docs/explanation/security\.md",
        r"kafka-acls",
        "the test of these rights grants them without a JVM for each line",
        tested_by(
            "tests/integration/processes/test_rights.py::"
            "test_the_table_has_what_the_commands_grant",
            checks.syntax,
        ),
    ),
    Entry(
        r"docs/how-to/shell\.md",
        r"featurewatch shell --bootstrap-server kafka-1:9092$",
        "it is a dialog at a terminal",
        tested_by(
            "tests/cli/shell/test_terminal_shell.py::test_a_failed_command_does_not_end_the_shell",
            checks.parsed,
        ),
    ),
    Entry(
        r"docs/how-to/releases\.md",
        r"featurewatch releases (?:learn|show)",
        "no release that featurewatch does not know is on this machine",
        tested_by("tests/cli/releases/test_releases.py::test_learn_list_and_show", checks.parsed),
    ),
    Entry(
        r"docs/explanation/controller\.md",
        r"featurewatch stack up .*--operations-dialect document",
        "the test of its brokers starts the same",
        tested_by(
            "tests/stack/test_document_brokers.py::test_real_brokers_under_the_document",
            checks.parsed,
        ),
    ),
    Entry(
        r"docs/how-to/upgrade\.md",
        r"featurewatch upgrade plan .*--zookeeper",
        "it needs a cluster in ZooKeeper mode",
        tested_by(
            "tests/monitor/upgrade/test_zookeeper_plan.py::test_the_preflight", checks.parsed
        ),
    ),
    Entry(
        r"docs/explanation/kip-4\.md",
        r"featurewatch \w+ \w+ --dialect kip-4",
        "the test of the commands starts its own brokers",
        tested_by(
            "tests/stack/test_controlled_brokers.py::"
            "test_the_commands_send_the_draft_to_real_brokers",
            checks.parsed,
        ),
    ),
    Entry(
        r"docs/explanation/reference-systems\.md",
        r"python -m featurewatch\.reference\.kraft",
        "it is one of three, and runs until it is killed",
        tested_by("tests/reference/kraft/test_node.py::test_leaders_are_killed", checks.syntax),
    ),
    Entry(
        r"docs/explanation/faults\.md",
        r"python -m tests\.faults --(?:json|markdown)",
        LONG,
        checks.faults,
    ),
)
"""Command lines that no test runs."""

SAMPLE: Final = "a cluster in this state takes a test minutes"

SHOWN: Final = (
    Entry("CONTRIBUTING.md", "src/featurewatch/", "it is a table of folders", checks.folders),
    Entry(r"docs/explanation/decoder\.md", r"\s*bytes", "it is a drawing", checks.names),
    Entry(
        r"docs/how-to/readiness\.md",
        "NOT READY",
        SAMPLE,
        tested_by("tests/documents/test_samples.py::test_readiness"),
    ),
    Entry(
        r"docs/how-to/readiness\.md",
        "Known faults",
        SAMPLE,
        tested_by("tests/documents/test_samples.py::test_known_faults"),
    ),
    Entry(
        r"docs/how-to/readiness\.md",
        "min.insync",
        SAMPLE,
        tested_by("tests/documents/test_samples.py::test_what_becomes_of_min_insync_replicas"),
    ),
    Entry(
        r"docs/how-to/readiness\.md",
        "Cluster 5L6g",
        SAMPLE,
        tested_by("tests/documents/test_samples.py::test_what_is_off"),
    ),
    Entry(
        r"docs/how-to/upgrade\.md",
        "Node 5 must not",
        SAMPLE,
        tested_by(
            "tests/documents/test_upgrade_samples.py::test_a_node_that_must_not_be_restarted"
        ),
    ),
    Entry(
        r"docs/how-to/upgrade\.md",
        "Upgrade of cluster",
        SAMPLE,
        tested_by("tests/documents/test_upgrade_samples.py::test_the_status_of_a_soak"),
    ),
    Entry(
        r"docs/how-to/upgrade\.md",
        "  ✓ plan:",
        SAMPLE,
        tested_by(
            "tests/documents/test_upgrade_samples.py::test_a_ghost_is_in_the_way_of_the_last_step"
        ),
    ),
    Entry(
        r"docs/how-to/admin\.md",
        "Kafka orders",
        SAMPLE,
        tested_by("tests/documents/test_samples.py::test_strimzi"),
    ),
    Entry(
        r"docs/how-to/features\.md",
        "metadata",
        SAMPLE,
        tested_by("tests/documents/test_samples.py::test_the_preview_of_a_change"),
    ),
    Entry(
        r"docs/how-to/client\.md",
        r"it is 1|5 30|metadata\.version upgraded",
        "it is printed by Python",
        tested_by("tests/client/test_doc.py::test_an_example_prints_what_the_page_shows"),
    ),
    Entry(
        r"docs/how-to/read-the-lake\.md",
        r"shape: |role ",
        "it is printed by Python",
        tested_by(
            "tests/pipeline/lake/test_open_readers.py::test_an_example_prints_what_the_page_shows"
        ),
    ),
    Entry(
        r"docs/how-to/audit\.md",
        "feature_changes",
        SAMPLE,
        tested_by("tests/documents/test_samples.py::test_the_report_of_an_audit"),
    ),
    Entry(
        r"docs/how-to/shell\.md",
        "Commands of",
        "it is a dialog at a terminal",
        checks.dialog,
    ),
    Entry(r"docs/explanation/operations\.md", r"\d{4}-", SAMPLE, checks.says_what_the_code_says),
    Entry(
        r"docs/reference/topics\.md",
        "ce_specversion",
        "it is a message",
        tested_by("tests/streams/test_topics_doc.py::test_the_headers_are_those_of_the_example"),
    ),
)
"""Shown texts that are compared with nothing that a test runs here."""
