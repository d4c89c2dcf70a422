"""The registry of rules: every rule about nodes is evaluated for all nodes it may apply to."""

import ast
import inspect
from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import attrgetter
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.monitor import alerts, touched
from featurewatch.monitor.readiness.state_timers import DEFAULT_LIMITS, NO_TIMES, Timer
from featurewatch.monitor.rules import (
    READS_BY_KIND,
    RULES,
    RULES_BY_KIND,
    Finding,
    Rule,
    RuleContext,
    Subject,
    SubjectKind,
    needs_evaluation,
)
from featurewatch.streams.types import NodeId, NodeKey, Role
from featurewatch.tables.image.cluster import Authority
from tests.simulation import records as r
from tests.simulation.records import MV, TV
from tests.tables.images import fold_all

RANGES = st.tuples(st.integers(-1, 5), st.integers(-1, 5))


def _find(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    del context, subject
    return ()


@pytest.mark.parametrize(
    ("kind", "timer"),
    [
        (SubjectKind.NODE, None),
        (SubjectKind.NODE, Timer.UPGRADE),
        (SubjectKind.UPGRADE, None),
        (SubjectKind.UPGRADE, Timer.OFFLINE),
        (SubjectKind.LOG, Timer.OFFLINE),
    ],
)
def test_a_rule_that_could_never_fire_is_refused(kind: SubjectKind, timer: Timer | None) -> None:
    """Without triggers, or with a timer its subjects lack, a rule would never be evaluated."""
    with pytest.raises(TypeError, match="the rule new could never fire"):
        Rule("new", "something new", kind, _find, timer=timer)


def test_preconditions_are_for_nodes() -> None:
    """Only nodes have capabilities."""
    with pytest.raises(TypeError, match="could never fire"):
        Rule("new", "something new", SubjectKind.LOG, _find, precondition=lambda *_: True)


@pytest.mark.parametrize("kind", [SubjectKind.LOG, SubjectKind.FEATURE])
def test_a_rule_names_what_it_reads(kind: SubjectKind) -> None:
    """Otherwise no event would evaluate it."""
    with pytest.raises(TypeError, match=f"a rule about a {kind} needs reads"):
        Rule("new", "something new", kind, _find)
    with pytest.raises(TypeError, match="nothing evaluates the reads of a source"):
        Rule("new", "something new", SubjectKind.SOURCE, _find, reads=("log",))


@pytest.mark.parametrize("authority", Authority)
def test_a_heartbeat_replaces_no_part_that_rules_read(authority: Authority) -> None:
    """Each heartbeat would evaluate them; and each name must be one of an image."""
    image = replace(fold_all([r.commit(0, r.register(1, {MV: (1, 21)}))]), authority=authority)
    after = image.with_sources(image.sources.with_status(r.following(0)))
    assert after is not image
    for part in frozenset().union(*READS_BY_KIND.values()):
        assert attrgetter(part)(after) is attrgetter(part)(image)


def _kinds_in(module: ModuleType, definition: ast.AST) -> Iterator[SubjectKind]:
    """The kinds of the subjects that a function makes, or has from its module."""
    for node in ast.walk(definition):
        match node:
            case ast.Call(func=ast.Name("Subject"), args=[ast.Attribute(attr=kind), *_]):
                yield SubjectKind[kind]
            case ast.Name(name) if isinstance(subject := getattr(module, name, None), Subject):
                yield subject.kind


def test_alerts_evaluate_each_kind_of_subject() -> None:
    """A rule about a subject that neither `monitor.alerts` nor `touched` has would never fire."""
    yielded = {*READS_BY_KIND}
    for module in (alerts, touched):
        for definition in ast.parse(inspect.getsource(module)).body:
            if isinstance(definition, ast.FunctionDef | ast.ClassDef):
                yielded |= set(_kinds_in(module, definition))
    assert yielded == set(SubjectKind)


def test_names_are_unique_and_each_kind_has_rules() -> None:
    """An alert's id contains the rule's name."""
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(RULES_BY_KIND[kind] for kind in SubjectKind)


@given(RANGES, RANGES | st.none(), st.integers(1, 5), st.integers(0, 5))
def test_no_finding_without_its_precondition(
    first: tuple[int, int], second: tuple[int, int] | None, level: int, other: int
) -> None:
    """A node whose class needs no evaluation has no findings of a rule without a timer."""
    ranges = {MV: first} if second is None else {MV: first, TV: second}
    levels = (r.level(MV, level), r.level(TV, other))
    image = fold_all([r.commit(1, *levels, r.register(1, ranges, fenced=False))])
    key = NodeKey(Role.BROKER, NodeId(1))
    context = RuleContext(image, NO_TIMES, DEFAULT_LIMITS, now_ms=0, received_ms=0)
    node = image.nodes.get(key)
    assert node is not None
    for rule in RULES_BY_KIND[SubjectKind.NODE]:
        findings = [*rule.find(context, Subject(SubjectKind.NODE, key))]
        if rule.timer is None and findings:
            assert rule.precondition is not None
            assert rule.precondition(node.capabilities, image.features.levels)
            assert needs_evaluation(node.capabilities, image.features.levels)
