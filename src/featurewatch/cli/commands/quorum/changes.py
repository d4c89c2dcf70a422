"""A change of the voters: the checks, the question, the request, and what is printed of them.

Without ``--dry-run`` a check that says no ends the command before anything is sent, except where
the leader of the quorum looks at the same: its own refusal is the tool's text then.
"""

import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NoReturn
from uuid import UUID

from featurewatch.admin.errors import AdminError
from featurewatch.admin.quorum.checks import Check, Verdict, verdict_of
from featurewatch.admin.quorum.client import QuorumAdmin
from featurewatch.cli.command_line import Exit
from featurewatch.cli.commands.quorum.documents import change_document
from featurewatch.cli.commands.quorum.failures import as_tool_errors
from featurewatch.cli.errors import ExitCode
from featurewatch.cli.kafka_tools.target import AdminTarget
from featurewatch.cli.output.confirmation import confirm, must_confirm
from featurewatch.cli.output.terminal import print_error
from featurewatch.kafka.client_properties import ClientConfig
from featurewatch.streams.quorum import QuorumDescription, VoterEndpoint, directory_text
from featurewatch.streams.types import NodeId

_EXIT_CODES: Final = {
    Verdict.YES: ExitCode.GOOD,
    Verdict.NO: ExitCode.NO,
    Verdict.UNKNOWN: ExitCode.UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the voters.

    ``action`` names it in documents; ``checks`` judges it, ``send`` requests it, and ``line`` is
    the tool's line about it, after a dry run or not. ``asks`` are checks for which brokers are
    asked.
    """

    action: str
    node_id: NodeId
    directory_id: UUID | None
    endpoints: tuple[VoterEndpoint, ...]
    checks: Callable[[QuorumDescription], tuple[Check, ...]]
    send: Callable[[QuorumAdmin], Awaitable[None]]
    line: Callable[[bool], str]
    asks: Callable[[QuorumAdmin, QuorumDescription], Awaitable[tuple[Check, ...]]] | None = None

    async def judge(self, admin: QuorumAdmin) -> tuple[Check, ...]:
        """All checks, on the quorum as it is now."""
        quorum = await _described(admin)
        asked = () if self.asks is None else await self.asks(admin, quorum)
        return (*self.checks(quorum), *asked)


@dataclass(frozen=True, slots=True)
class Consent:
    """The options that decide whether a change is sent."""

    dry_run: bool
    force: bool
    yes: bool


async def apply_change(
    target: AdminTarget, change: Change, consent: Consent, config: ClientConfig | None = None
) -> None:
    """Checks a change, sends it unless that is a dry run or a check forbids it, and prints.

    Raises:
        Exit: The checks say no (3) or leave it unknown (4), or the person declined (1).
        KafkaToolError: The leader refused.
        AdminError: As `QuorumAdmin`.
    """
    if consent.dry_run:
        await _rehearse(target, change, config)
    with as_tool_errors():
        async with target.connect(QuorumAdmin, changes=True, config=config) as admin:
            checks = await change.judge(admin)
            if not consent.force:
                _require(target, change, checks)
            if must_confirm(consent.yes):
                confirm([change.line(True), *map(str, checks)])
            await change.send(admin)
    target.line(change.line(False))
    target.document(lambda: _document(change, checks, is_sent=True))


async def _rehearse(target: AdminTarget, change: Change, config: ClientConfig | None) -> NoReturn:
    """Prints the tool's line of a dry run and every check; nothing is sent."""
    target.addresses()
    try:
        async with target.connect(QuorumAdmin, config=config) as admin:
            checks = await change.judge(admin)
    except AdminError as error:
        checks = (Check("quorum", Verdict.UNKNOWN, f"the quorum cannot be described: {error}"),)
    target.line(change.line(True))
    sys.stdout.flush()
    if not target.as_json:
        for check in checks:
            print_error(str(check))
    target.document(lambda: _document(change, checks, is_sent=False))
    raise Exit(_EXIT_CODES[verdict_of(checks)])


async def _described(admin: QuorumAdmin) -> QuorumDescription:
    """The quorum with its cluster's id, or without that where the login may not see it."""
    quorum = await admin.describe()
    cluster_id = None
    with suppress(AdminError):  # only the check of ``meta.properties`` needs it
        cluster_id = await admin.cluster_id()
    return quorum.of_cluster(cluster_id)


def _require(target: AdminTarget, change: Change, checks: tuple[Check, ...]) -> None:
    """Ends the command where a check that is not the leader's says no or unknown."""
    against = [one for one in checks if one.verdict is not Verdict.YES and not one.by_leader]
    # Where the leader refuses anyway, its text is the reason, and other checks have no subject.
    if not against or any(one.by_leader and one.verdict is Verdict.NO for one in checks):
        return
    sys.stdout.flush()
    target.document(lambda: _document(change, checks, is_sent=False))
    for check in against:
        print_error(str(check))
    print_error("nothing was sent, nothing is changed; --force sends it all the same")
    raise Exit(_EXIT_CODES[verdict_of(against)])


def _document(change: Change, checks: tuple[Check, ...], *, is_sent: bool) -> dict[str, object]:
    return change_document(
        change.action,
        change.node_id,
        directory_text(change.directory_id),
        change.endpoints,
        checks,
        is_sent=is_sent,
    )
