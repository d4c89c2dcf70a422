"""The list of planted bugs fits the tree; `make mutants` plants them."""

import ast

import pytest

from tests.mutants.__main__ import MUTANTS
from tests.mutants.mutant import Mutant
from tests.paths import PACKAGE


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.row} {mutant.bug}")
def test_a_bug_can_be_planted(mutant: Mutant) -> None:
    """Its text is in its file once, and the replacement is Python."""
    source = (PACKAGE / mutant.file).read_text()
    assert source.count(mutant.old) == 1
    assert mutant.new != mutant.old
    ast.parse(source.replace(mutant.old, mutant.new))
