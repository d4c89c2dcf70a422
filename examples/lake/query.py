"""Answers a question about a lake by DuckDB, without Spark and without a JVM.

Usage: python query.py LAKE [SQL], for example: python query.py /data/lake "FROM current_levels"

It needs the packages duckdb, deltalake and pyarrow.
"""

import sys
from pathlib import Path

import duckdb
from deltalake import DeltaTable

TABLES = {
    "gold": (
        *("epochs", "feature_changes", "alerts", "operations", "capability_intervals"),
        *("incompatibilities", "upgrades", "readiness_by_day"),
    ),
    "silver": ("answers", "source_states"),
}
"""The tables that the views read."""


def connect(lake: str) -> duckdb.DuckDBPyConnection:
    """Returns a connection with the tables of a lake, and the views of ``views.sql``."""
    connection = duckdb.connect()
    for schema, names in TABLES.items():
        connection.execute(f"CREATE SCHEMA {schema}")
        for name in names:
            rows = DeltaTable(f"{lake}/{schema}/{name}").to_pyarrow_dataset()
            connection.register(f"{schema}_{name}", rows)
            connection.execute(f"CREATE VIEW {schema}.{name} AS FROM {schema}_{name}")
    connection.execute(Path(__file__).with_name("views.sql").read_text())
    return connection


def main(lake: str, question: str = "FROM current_levels") -> None:
    """Prints the rows of an answer."""
    connect(lake).sql(question).show(max_rows=1000, max_width=200)


if __name__ == "__main__":
    main(*sys.argv[1:])
