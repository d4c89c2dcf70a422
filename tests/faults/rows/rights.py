"""Rights that are taken away, and a certificate that expires, while everything runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from tests.faults.fault import Fault
from tests.faults.rows.processes import STALLED
from tests.faults.servers import TLS_LINK
from tests.faults.stack import Stack


def _binding(
    stack: Stack, user: str, operation: AclOperation, permission: AclPermissionType
) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC,
        f"{stack.prefix}.",
        ResourcePatternType.PREFIXED,
        f"User:{user}",
        "*",
        operation,
        permission,
    )


@contextmanager
def denied(stack: Stack, user: str, operation: AclOperation) -> Iterator[None]:
    """A right on all topics is denied to one user; everybody else has every right as before."""
    bindings = [
        _binding(stack, "*", AclOperation.ALL, AclPermissionType.ALLOW),
        _binding(stack, user, operation, AclPermissionType.DENY),
    ]
    for binding in bindings:
        (created,) = stack.admin.create_acls([binding]).values()
        created.result()
    try:
        yield
    finally:
        for binding in reversed(bindings):
            (deleted,) = stack.admin.delete_acls([_filter(binding)]).values()
            deleted.result()


def _filter(binding: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        binding.restype,
        binding.name,
        binding.resource_pattern_type,
        binding.principal,
        binding.host,
        binding.operation,
        binding.permission_type,
    )


@contextmanager
def certificate_expired(stack: Stack) -> Iterator[None]:
    """The bus shows a certificate that has expired, on connections that are reopened."""
    stack.proxy.set_certificate(TLS_LINK, stack.servers.certificates.expired)
    try:
        yield
    finally:
        stack.proxy.set_certificate(TLS_LINK, stack.servers.certificates.valid)


ROWS: Final = (
    *(
        Fault(
            f"rights-{user}-{operation.name.lower()}",
            f"the {user} may not {operation.name.lower()} any topic for 20 s",
            partial(denied, user=user, operation=operation),
            hold_s=20,
            may_fire=STALLED,
        )
        for user, operation in (
            ("source", AclOperation.WRITE),
            ("worker", AclOperation.WRITE),
            ("worker", AclOperation.READ),
        )
    ),
    Fault(
        "certificate-expired",
        "the bus's certificate has expired for 20 s, and connections are reopened",
        certificate_expired,
        hold_s=20,
        tls=True,
        may_fire=STALLED,
    ),
)
