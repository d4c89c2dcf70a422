"""Follows a page: runs its command lines in order, and compares what it shows of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest
import yaml

from tests.documents.blocks import Block, Command, all_blocks, blocks, commands
from tests.documents.register import SHOWN
from tests.documents.scripts import codes_of, place_of
from tests.documents.session import Session, assert_shown
from tests.paths import ROOT

BLOCKS: Final = all_blocks()


def pages(place: str) -> pytest.MarkDecorator:
    """The pages with lines that run in a place."""
    here = (block.page for block in BLOCKS for c in commands(block) if place_of(c) == place)
    return pytest.mark.parametrize("page", [*dict.fromkeys(here)])


def follow(session: Session, place: str, page: str) -> None:
    """Runs the lines of a page that belong to a place, and compares what the page shows of them."""
    for block in blocks(ROOT / page):
        for command in commands(block):
            if place_of(command) == place:
                printed = session.run(command, codes_of(command))
                if command.output and not _is_sample(command):
                    assert_shown(session.with_paths(command.output), printed)
    session.close()


def _is_sample(command: Command) -> bool:
    return any(entry.covers(command.page, command.output or "") for entry in SHOWN)


def block_of(page: str, language: str, begins: str) -> Any:
    """The content of the block of a page that begins so."""
    found: list[Block] = [*blocks(ROOT / page)]
    (text,) = (b.text for b in found if b.language == language and b.text.startswith(begins))
    return yaml.safe_load(text)


@contextmanager
def ended(session: Session) -> Iterator[Session]:
    """A session of which nothing runs afterwards."""
    try:
        yield session
    finally:
        session.kill()
