"""The list of planted bugs fits the tree; `make mutants` plants them."""

import ast

import pytest

from scripts.requirements import DOCUMENT, RELEASED, claimed_in
from tests.mutants.__main__ import MUTANTS, with_ids
from tests.mutants.mutant import OF_KAFKA_ITSELF, Mutant
from tests.paths import PACKAGE


def test_every_row_that_is_shown_as_written_has_a_mutant() -> None:
    """Except those of Kafka itself; and no mutant is of a row that is open, or of none."""
    shown = claimed_in(DOCUMENT.read_text())
    rows = {mutant.row for mutant in MUTANTS}
    assert rows - shown == set()
    as_written = {name for name in shown if not name.endswith(RELEASED)}
    assert as_written - rows == OF_KAFKA_ITSELF


def test_ids_are_short_and_stay_apart() -> None:
    """The row, r for released Kafka, and a number."""
    of = [Mutant(row, "bug", "file.py", "a", "b") for row in ("C-17", "C-17 as released", "C-17")]
    assert [*with_ids(of)] == ["C-17.1", "C-17r.1", "C-17.2"]


@pytest.mark.parametrize("file", sorted({mutant.file for mutant in MUTANTS}))
def test_the_bugs_of_a_file_can_be_planted(file: str) -> None:
    """The text of each is in the file once, and the replacement is Python."""
    source = (PACKAGE / file).read_text()
    for mutant in (mutant for mutant in MUTANTS if mutant.file == file):
        where = f"{mutant.row} {mutant.bug}"
        assert source.count(mutant.old) == 1, where
        assert mutant.new != mutant.old, where
        try:
            ast.parse(source.replace(mutant.old, mutant.new))
        except SyntaxError as error:
            pytest.fail(f"{where}: {error}")
