"""``featurewatch cluster compare-strimzi``: a cluster beside its Strimzi resources."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from featurewatch.cli.command_line import Argument, Exit, Option, command
from featurewatch.cli.config import options
from featurewatch.cli.config.options import (
    AsJson,
    BootstrapController,
    BootstrapServer,
    BusServers,
    ClusterIdOption,
    CommandConfig,
    ConfigFile,
    ControllersConfig,
    LogDirectory,
    OnlyCluster,
    Prefix,
)
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.output.terminal import print_line

if TYPE_CHECKING:
    from featurewatch.monitor.strimzi import StrimziKafka

_MAX_BYTES: Final = 2 * 1024 * 1024


@command()
def compare_strimzi(
    file: Annotated[
        Path | None,
        Argument(metavar="[FILE]", help="YAML or JSON of the Kafka and its node pools."),
    ] = None,
    name: Annotated[
        str, Option("--name", metavar="NAME", help="Kafka resource, if there are several.")
    ] = "",
    namespace: Annotated[
        str,
        Option(
            "--namespace",
            metavar="NAME",
            help="Without FILE: namespace in Kubernetes.",
            default="that of the context or of the pod",
        ),
    ] = "",
    kubeconfig: Annotated[
        Path | None,
        Option(
            "--kubeconfig",
            metavar="FILE",
            help="Without FILE: login to the API server.",
            default="KUBECONFIG, the pod's service account, or ~/.kube/config",
        ),
    ] = None,
    context: Annotated[
        str,
        Option(
            "--context",
            metavar="NAME",
            help="Without FILE: context of the kubeconfig.",
            default="its current one",
        ),
    ] = "",
    cluster: OnlyCluster = "",
    as_json: AsJson = False,
    config: ConfigFile = None,
    bus: BusServers = "",
    prefix: Prefix = "",
    bootstrap_controller: BootstrapController = "",
    bootstrap_server: BootstrapServer = "",
    log_directory: LogDirectory = None,
    cluster_id: ClusterIdOption = "",
    command_config: CommandConfig = None,
    controllers_config: ControllersConfig = None,
) -> None:
    """Show where a cluster and its Strimzi resources disagree: level, release, node ids, voters.

    FILE is what `kubectl get kafka,kafkanodepool -o yaml` prints; without it the API server is
    asked for them. The cluster is read from the
    worker's state, or directly. Exits with 3 if they disagree, with 4 if that is not known.
    """
    # Here, so that help needs no settings and no engines.
    from featurewatch.cli.commands.readiness.assess import images
    from featurewatch.cli.output.rendering import print_json
    from featurewatch.common.text import plain
    from featurewatch.monitor.strimzi import compare

    if file is not None and (namespace or kubeconfig or context):
        raise UsageError("pass either FILE, or --namespace, --kubeconfig and --context")
    kafka = _of_server(kubeconfig, context, namespace, name) if file is None else _kafka(file, name)
    sources = options.cluster_flags(
        controllers=bootstrap_controller,
        servers=bootstrap_server,
        log_directory=log_directory,
        command_config=command_config,
        controllers_config=controllers_config,
    )
    if sources and (cluster_id or cluster):
        sources[0]["cluster_id"] = cluster_id or cluster
    found = images(
        # The worker may follow many clusters, of which the resource names one.
        cluster=cluster or cluster_id or ("" if sources else kafka.cluster_id),
        config=config,
        bus=options.bus_flags(bus, prefix),
        sources=sources,
    )
    if not found:
        raise Exit(ExitCode.UNKNOWN)
    if len(found) > 1:
        raise UsageError("the worker follows more than one cluster: pass --cluster")
    differences = compare(kafka, found[0])
    if as_json:
        print_json({"kafka": kafka.name, "cluster": found[0].cluster, "differences": differences})
    else:
        print_line(f"Kafka {plain(kafka.name)}, cluster {plain(found[0].cluster)}")
        for item in differences:
            print_line(f"  {'?' if item.is_unknown else '✗'} {plain(item.text)}")
        if not differences:
            print_line("  The resources and the cluster agree.")
    if any(not item.is_unknown for item in differences):
        raise Exit(ExitCode.NO)
    if differences:
        raise Exit(ExitCode.UNKNOWN)


def _of_server(kubeconfig: Path | None, context: str, namespace: str, name: str) -> "StrimziKafka":
    """The resources that the API server has; ends with 4 if they cannot be read."""
    import os

    from featurewatch.cli.output.terminal import print_error
    from featurewatch.integrations.kubernetes import (
        KubernetesError,
        find_api_server,
        strimzi_documents,
    )
    from featurewatch.monitor.strimzi import StrimziError, kafka_of

    try:
        server = find_api_server(os.environ, kubeconfig, context, namespace)
    except KubernetesError as error:
        raise UsageError(str(error)) from None
    try:
        return kafka_of(strimzi_documents(server), name)
    except KubernetesError as error:
        print_error(str(error))
        raise Exit(ExitCode.UNKNOWN) from None
    except StrimziError as error:
        raise UsageError(f"{server.url}, namespace {server.namespace}: {error}") from None


def _kafka(file: Path, name: str) -> "StrimziKafka":
    """The resources in a file; raises `UsageError`."""
    from featurewatch.common import yaml_file
    from featurewatch.monitor.strimzi import StrimziError, kafka_of

    try:
        with file.open("rb") as opened:
            content = opened.read(_MAX_BYTES + 1)
        text = content.decode()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not YAML: it is not text") from None
    if len(content) > _MAX_BYTES:
        raise UsageError(f"{file} has more than 2 MiB: save the Kafka and its node pools alone")
    try:
        parts = re.split(r"^---\s*$", text, flags=re.MULTILINE)
        documents: list[Any] = [yaml_file.parse(part, str(file)) for part in parts if part.strip()]
        return kafka_of(documents, name)
    except yaml_file.YamlError as error:
        raise UsageError(str(error)) from None
    except StrimziError as error:
        raise UsageError(f"{file}: {error}") from None
