"""``featurewatch rehearse`` as it is called and shown, without a cluster."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from featurewatch.cli.app import app
from featurewatch.cli.commands.rehearse import real_controller as rehearse_real
from featurewatch.cli.commands.rehearse import run as rehearse
from featurewatch.cli.commands.rehearse.real_controller import ComparedStep, RealRehearsal
from featurewatch.cli.config.settings import ClusterSection
from featurewatch.cli.errors import UsageError
from featurewatch.cli.runtime.cluster_image import ClusterNotReadError
from featurewatch.controller.kraft import ControllerState, controller_state, release_of
from featurewatch.controller.rehearsal.rehearse import rehearse as play
from featurewatch.streams.events import SourceState, SourceStatus
from featurewatch.streams.types import METADATA_VERSION, ClusterId, FeatureLevel, NodeId
from featurewatch.tables.image.cluster import Authority, ClusterImage
from featurewatch.tables.image.log import Quorum
from tests.simulation import records as r
from tests.simulation.records import MV
from tests.tables.images import fold_all

OLD = release_of("3.9").ranges()
VOTERS = (NodeId(1), NodeId(2), NodeId(3))
AT = ("--bootstrap-controller", "kafka:9093")


def image(level: int = 19) -> ClusterImage:
    """Two brokers and three controllers of 3.9, controller 1 active."""
    nodes = [r.register(node, OLD, fenced=False) for node in (1, 2)]
    controllers = [r.register_controller(node, OLD) for node in VOTERS] if level >= 15 else []
    folded = fold_all([r.commit(9, r.level(MV, level), *nodes, *controllers)])
    return with_quorum(folded, Quorum(1, 4, VOTERS))


def with_quorum(read: ClusterImage, quorum: Quorum) -> ClusterImage:
    """The image with another quorum."""
    return replace(read, log=replace(read.log, quorum=quorum))


@pytest.fixture
def run_rehearse(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs the command on an image, or with what reading it raises."""

    def run(*arguments: str, seen: ClusterImage | Exception | None = None) -> Result:
        def read(_: ClusterSection, **_reading: object) -> ClusterImage:
            if isinstance(seen, Exception):
                raise seen
            return seen or image()

        monkeypatch.setattr(rehearse, "read_image", read)
        return CliRunner().invoke(app, ["rehearse", *arguments])

    return run


def test_every_step_is_shown_with_its_verdict_and_the_response(
    run_rehearse: Callable[..., Result],
) -> None:
    """Who is asked, each verdict, the controller's words, what happens; a refusal exits 3."""
    result = run_rehearse(*AT, "-s", "upgrade:metadata.version=4.3-IV0", "-s", "stop:broker-2")
    assert result.exit_code == 3
    lines = result.output.splitlines()
    assert lines[0].startswith("cluster ")
    assert lines[0].endswith("asked as controller 1 of Kafka 3.9")
    assert lines[1] == "levels  metadata.version 19 (3.7-IV4)"
    assert lines[2] == "nodes   brokers 1-2, registered controllers 1-3"
    assert lines[3] == " 1 upgrade:metadata.version=4.3-IV0  refused"
    assert "Local controller 1 only supports versions 1-21" in lines[4]
    assert lines[5] == " 2 stop:broker-2  accepted"
    assert lines[6] == "   fences broker 2 when its session ends"


def test_a_long_roll_is_one_paragraph(run_rehearse: Callable[..., Result]) -> None:
    """Many restarts that work are drawn together, short ones and refusals are not."""
    nodes = [r.register(node, OLD, fenced=False) for node in range(10, 20)]
    read = fold_all([r.commit(9, r.level(MV, 19), *nodes, r.register_controller(1, OLD))])
    read = with_quorum(read, Quorum(1, 4, (NodeId(1),)))
    steps = ("-s", "restart:all@4.3", "-s", "upgrade:metadata.version=4.3-IV0")
    lines = run_rehearse(*AT, *steps, seen=read).output.splitlines()
    assert lines[3:6] == [
        " 1 to 22 controllers 1 and brokers 10-19 are lost and register  accepted",
        "   no majority of the voters is left: no request is answered until there is one",
        "   controller 1 (Kafka 4.3) becomes active",
    ]
    assert lines[6] == "23 upgrade:metadata.version=4.3-IV0  accepted"
    assert (
        run_rehearse(*AT, "-s", "restart:brokers").output.splitlines()[3]
        == " 1 stop:broker-1  accepted"
    )


def test_json_is_one_document(run_rehearse: Callable[..., Result]) -> None:
    """Each step with verdict, error, consequences and levels after it; accepted exits 0."""
    result = run_rehearse(*AT, "--step", "upgrade:metadata.version=3.9", "--json")
    assert result.exit_code == 0
    document = json.loads(result.output)
    assert (document["release"], document["controller"], document["verdict"]) == (
        "3.9",
        1,
        "accepted",
    )
    (step,) = document["steps"]
    assert (step["error"], step["features"]) == (
        "NONE",
        {"metadata.version": {"error": "NONE", "text": None}},
    )
    assert step["levels"] == {"metadata.version": 21}
    assert [consequence["level"] for consequence in step["consequences"]] == [20, 21]


def test_steps_of_a_file_come_first(run_rehearse: Callable[..., Result], tmp_path: Path) -> None:
    """A YAML list of steps, then those of the command line."""
    file = tmp_path / "steps.yaml"
    file.write_text("steps:\n- add-broker: 9@4.3\n- upgrade: {metadata.version: 3.8}\n")
    result = run_rehearse(*AT, "--steps", str(file), "-s", "unregister:broker-9", "--json")
    assert [step["step"] for step in json.loads(result.output)["steps"]] == [
        "add-broker:9@4.3",
        "upgrade:metadata.version=3.8",
        "unregister:broker-9",
    ]


def test_release_selects_the_model_of_the_controller(run_rehearse: Callable[..., Result]) -> None:
    """--release: as if the active controller ran it."""
    result = run_rehearse(*AT, "-s", "upgrade:metadata.version=30", "--release", "4.3.0", "--json")
    (step,) = json.loads(result.output)["steps"]
    assert step["responder"] == "controller 1 (Kafka 4.3)"
    assert "Broker 2 only supports versions 1-21" in step["messages"][0]


@pytest.mark.form("document")
def test_levels_are_decided_as_kip_778_is_written(run_rehearse: Callable[..., Result]) -> None:
    """--as-written: a lossy downgrade has an error of its own and UNSAFE overrides it (M-09,
    M-57)."""
    steps = ("-s", "downgrade:metadata.version=16", "-s", "downgrade-unsafe:metadata.version=16")
    written = run_rehearse(*AT, *steps, "--as-written", "--json")
    safe, unsafe = json.loads(written.output)["steps"]
    assert safe["verdict"] == "refused"
    assert safe["messages"] == [
        "The downgrade of metadata.version from 19 to 16 may lose metadata."
    ]
    assert unsafe["verdict"] == "accepted"
    released = run_rehearse(*AT, *steps, "--json")
    assert [step["verdict"] for step in json.loads(released.output)["steps"]] == ["refused"] * 2


def test_a_real_controller_is_not_as_written(run_rehearse: Callable[..., Result]) -> None:
    """Comparing the two is wrong usage."""
    result = run_rehearse(
        *AT, "-s", "stop:broker-1", "--as-written", "--on-real-controller", "4.3.0"
    )
    assert isinstance(result.exception, UsageError)
    assert "--as-written" in str(result.exception)


def test_what_is_not_known_exits_with_4(run_rehearse: Callable[..., Result]) -> None:
    """No majority, a cluster that does not answer, no active controller, software nobody tells."""
    lost = (
        "-s",
        "stop:controller-1",
        "-s",
        "stop:controller-2",
        "-s",
        "upgrade:metadata.version=20",
    )
    assert run_rehearse(*AT, *lost).exit_code == 4
    step = ("-s", "stop:broker-1")
    silent = run_rehearse(
        *AT, *step, seen=ClusterNotReadError("kafka:9093 was not read to its end: nobody listens")
    )
    assert (silent.exit_code, silent.stdout) == (4, "")
    assert "nobody listens" in silent.stderr
    nobody = run_rehearse(*AT, *step, seen=with_quorum(image(), Quorum()))
    assert nobody.exit_code == 4
    assert "which controller is active is not known" in nobody.stderr


def test_the_answers_of_nodes_alone_are_a_part(run_rehearse: Callable[..., Result]) -> None:
    """Without the metadata log an accepted level is unknown; who leads comes from the nodes."""
    status = SourceStatus(
        ClusterId("c"), Authority.ANSWERS, SourceState.FOLLOWING, -1, -1, -1, 2, 4, "", 1
    )
    read = with_quorum(image(), Quorum())
    sources = read.sources.with_status(status)
    read = replace(read, authority=Authority.ANSWERS, sources=sources)
    result = run_rehearse(*AT, "-s", "upgrade:metadata.version=20", "--json", seen=read)
    document = json.loads(result.output)
    assert (result.exit_code, document["controller"], document["verdict"]) == (4, 2, "unknown")
    assert "could object" in document["steps"][0]["notes"][-1]


WRONG = (
    ((*AT,), "pass --step"),
    ((*AT, "-s", "melt:broker-1"), "there is no 'melt'"),
    ((*AT, "--steps", "missing.yaml"), "missing.yaml cannot be read"),
    ((*AT, "-s", "stop:broker-1", "--release", "9.9"), "Kafka '9.9' is not in the table"),
    (("-s", "stop:broker-1"), "pass --bootstrap-controller"),
    (("-s", "stop:broker-1", "--bootstrap-controller", "nonsense"), "write host:port"),
    ((*AT, "-s", "stop:broker-1", "--on-real-controller", "3.8"), "choose one of 3.9 to 4.4"),
    ((*AT, "-s", "stop:broker-1", "--on-real-controller", "new"), "not in the table of levels"),
)


@pytest.mark.parametrize(("arguments", "text"), WRONG)
def test_wrong_usage_is_one_line(
    run_rehearse: Callable[..., Result], arguments: tuple[str, ...], text: str
) -> None:
    """What is wrong and what to give; nothing is asked."""
    result = run_rehearse(*arguments)
    assert isinstance(result.exception, UsageError)
    assert text in str(result.exception)
    assert "\n" not in str(result.exception)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"- [", "is not YAML"),
        (b"[" * 3000, "is nested too deep"),
        (b"\xff", "is not YAML"),
        (b"", "no steps"),
        (b"- stop: 7", "'7'"),
        (b"- upgrade: {release: 4.10}", "'4.10'"),
        (b"- upgrade: {metadata.version: 29, metadata.version: 30}", "is already set in line"),
    ],
)
def test_a_file_without_steps_is_wrong_usage(
    run_rehearse: Callable[..., Result], tmp_path: Path, content: bytes, text: str
) -> None:
    """The line names the file."""
    file = tmp_path / "steps.yaml"
    file.write_bytes(content)
    result = run_rehearse(*AT, "--steps", str(file))
    assert isinstance(result.exception, UsageError)
    assert text in str(result.exception)
    assert str(file) in str(result.exception)


def test_a_cluster_in_zookeeper_mode_is_refused(run_rehearse: Callable[..., Result]) -> None:
    """There is no KRaft controller to speak for."""
    result = run_rehearse(
        *AT, "-s", "stop:broker-1", seen=replace(image(), authority=Authority.ZOOKEEPER)
    )
    assert isinstance(result.exception, UsageError)
    assert "ZooKeeper mode" in str(result.exception)


def test_one_of_several_configured_clusters_is_named(
    run_rehearse: Callable[..., Result], tmp_path: Path
) -> None:
    """A configuration with one cluster needs no more; of several the id says which one."""
    file = tmp_path / "clusters.yaml"
    file.write_text(
        "clusters:\n- {cluster_id: a, servers: 'a:1'}\n- {cluster_id: b, servers: 'b:1'}\n"
    )
    given = ("-s", "stop:broker-1", "--config", str(file))
    several = run_rehearse(*given)
    assert isinstance(several.exception, UsageError)
    assert "say which one with --cluster-id" in str(several.exception)
    assert run_rehearse(*given, "--cluster-id", "b").exit_code == 0


def test_a_difference_to_the_real_controller_exits_with_1(
    run_rehearse: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said at its step, and counted at the end, whatever the verdicts are."""

    def real(name: str, live: ControllerState, steps: list[object]) -> RealRehearsal:
        (outcome,) = play(name, live, steps)  # type: ignore[arg-type]
        compared = ComparedStep(
            outcome, compared=True, real=None, differences=("it says otherwise",)
        )
        return RealRehearsal("3.9.1", live, ("the voters 2, 3 do not run",), (compared,))

    monkeypatch.setattr(rehearse, "rehearse_on_real_controller", real)
    arguments = (*AT, "-s", "upgrade:metadata.version=20", "--on-real-controller", "3.9")
    result = run_rehearse(*arguments)
    assert result.exit_code == 1
    assert "DIFFERENT: it says otherwise" in result.output
    assert "unequal the voters 2, 3 do not run" in result.output
    assert result.output.splitlines()[-1] == "1 differences to Kafka 3.9.1"
    document = json.loads(run_rehearse(*arguments, "--json").output)
    assert document["on_real_controller"]["difference_count"] == 1
    assert document["steps"][0]["differences"] == ["it says otherwise"]


def test_a_release_that_cannot_start_at_the_levels_is_wrong_usage() -> None:
    """Its own text says why it cannot be used."""
    live = replace(controller_state(image()), levels={METADATA_VERSION: FeatureLevel(30)})
    with pytest.raises(UsageError, match="this controller only supports versions 1-21"):
        rehearse_real.rehearse_on_real_controller("3.9.1", live, [])
