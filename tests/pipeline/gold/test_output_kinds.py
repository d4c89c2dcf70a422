"""The registries of the pipeline have every output of the worker."""

from featurewatch.pipeline.audit.lake_view import AUDITED
from featurewatch.pipeline.audit.live_tables import TYPED
from featurewatch.pipeline.fold.messages import OUTPUT_KINDS
from featurewatch.pipeline.gold.output_rows import SPECS, TABLES
from featurewatch.pipeline.gold.tables import GOLD
from featurewatch.streams.codec.outputs import TOPICS


def test_each_output_has_a_kind_of_rows() -> None:
    """Otherwise the fold would stop at the first one."""
    assert OUTPUT_KINDS.keys() == TOPICS.keys(), "OUTPUT_KINDS is in pipeline/fold/messages.py"
    assert set(OUTPUT_KINDS.values()) <= SPECS.keys(), "TABLES is in pipeline/gold/output_rows.py"


def test_each_table_of_gold_is_filled_and_that_of_an_output_is_audited() -> None:
    """The tables, what fills them, and what types the live messages of outputs agree."""
    assert {spec.table.name for spec in TABLES} == {table.name for table in GOLD}, (
        "GOLD in pipeline/gold/tables.py and TABLES in pipeline/gold/output_rows.py differ"
    )
    assert TYPED.keys() == {table.name for table in AUDITED.values()}, (
        "TYPED in pipeline/audit/live_tables.py has other tables than the outputs"
    )
