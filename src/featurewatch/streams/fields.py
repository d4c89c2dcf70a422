"""The types of the fields of events and outputs, with the bounds that readers check.

An event or an output is declared once, as a dataclass whose fields have these types. Derived from
it are the checks of a reader (`streams.codec.shapes`), the JSON Schemas (``scripts/generators``)
and columns of the lake. A field's docstring is its description in the schema; a string in
`Annotated` describes fields without one.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Annotated, Any, Final, NamedTuple, NewType, get_args, get_origin

from featurewatch.streams.types import (
    LATEST_MS,
    ClusterId,
    FeatureLevel,
    FeatureName,
    NodeId,
    SupportedRange,
)


class Bounds(NamedTuple):
    """The lowest and the highest value of an integer, or of both ends of a range."""

    low: int
    high: int


class Rule(Enum):
    """Checks and changes by a reader beyond a field's type; `codec.shapes` implements them."""

    NAME = auto()
    """At least one character."""
    DETAIL = auto()
    """A text for people; cut to `common.text.MAX_DETAIL_CHARS`."""
    CLUSTER_NAME = auto()
    """Cut to `common.text.MAX_NAME_CHARS`."""
    RANGE = auto()
    """A range whose minimum must not be above its maximum."""
    RANGES = auto()
    """Ranges by feature, read as `SupportedRanges`."""
    RECORDS = auto()
    """Metadata records: `MetadataRecord`."""
    OPTIONAL = auto()
    """Older versions do not publish the field: a reader uses its default."""


class NotBelow(NamedTuple):
    """The name of the field whose value must not be above this one's."""

    name: str


class Published(NamedTuple):
    """The type that is published, and so the schema's, where readers accept more.

    Readers show outputs of other versions, and of damaged or hostile input, as far as they can.
    ``closed``: objects in it have no other fields.
    """

    annotation: Any
    closed: bool = False


class Pattern(NamedTuple):
    """The regular expression that a published string matches."""

    regex: str


INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
INT64_BOUNDS: Final = Bounds(-INT64_MAX - 1, INT64_MAX)
LEVEL_BOUNDS: Final = Bounds(0, 2**15 - 1)

Int32 = Annotated[int, Bounds(0, INT32_MAX)]
Int32OrNone = Annotated[int, Bounds(-1, INT32_MAX)]
Int64 = Annotated[int, INT64_BOUNDS]
Offset = Annotated[int, Bounds(0, INT64_MAX)]
OffsetOrNone = Annotated[int, Bounds(-1, INT64_MAX)]
Checksum = Annotated[int, Bounds(-1, 2**32 - 1), Rule.OPTIONAL]
NodeIdOrNone = Annotated[NodeId, Bounds(-1, INT32_MAX)]

TimeOrNone = Annotated[int, Bounds(-1, LATEST_MS)]
SeenMs = Annotated[
    int,
    Bounds(0, LATEST_MS),
    "When the source saw it, in milliseconds since the Unix epoch.",
]
AppendMs = Annotated[
    TimeOrNone,
    "When Kafka's controller appended it, in milliseconds since the Unix epoch; -1: not known.",
]

Name = Annotated[str, Rule.NAME]
Detail = Annotated[str, Rule.DETAIL]
DetailOrNone = Annotated[str, Rule.DETAIL, Rule.OPTIONAL]
ClusterName = Annotated[
    str,
    Rule.CLUSTER_NAME,
    Rule.OPTIONAL,
    "The configured name of the cluster; empty or missing: it has no name.",
]
LevelRange = Annotated[
    SupportedRange,
    LEVEL_BOUNDS,
    Rule.RANGE,
    "[minimum, maximum], both inclusive; the minimum is not above the maximum.",
]

_NOMINAL: Final[Mapping[Any, Any]] = {
    ClusterId: Annotated[Name, "Kafka's cluster id."],
    FeatureName: Name,
    NodeId: Int32,
    FeatureLevel: Annotated[int, LEVEL_BOUNDS],
}
"""The bounds of the nominal types, where an annotation has no others."""


def unwrap(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """Returns an annotation's plain type and its metadata, of which a later item overrides."""
    if get_origin(annotation) is Annotated:
        base, *metadata = get_args(annotation)
        inner_base, inner = unwrap(base)
        return inner_base, (*inner, *metadata)
    if isinstance(annotation, NewType):
        return unwrap(_NOMINAL[annotation])
    return annotation, ()
