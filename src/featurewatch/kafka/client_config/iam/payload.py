"""The client's message of AWS_MSK_IAM: a request that is signed with Signature Version 4.

The fields are those of ``AWS4SignedPayloadGenerator`` of aws-msk-iam-auth; botocore signs.
"""

from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlsplit

import orjson

if TYPE_CHECKING:
    from botocore.credentials import ReadOnlyCredentials

_VERSION: Final = "2020_10_22"
_ACTION: Final = "kafka-cluster:Connect"
_SERVICE: Final = "kafka-cluster"
_LIFETIME_S: Final = 900
_USER_AGENT: Final = "featurewatch"


def signed_payload(host: str, region: str, credentials: "ReadOnlyCredentials") -> bytes:
    """The message to the broker ``host``, signed now; it is valid for 15 minutes."""
    from botocore.auth import SigV4QueryAuth
    from botocore.awsrequest import AWSRequest

    name = f"[{host}]" if ":" in host else host
    request = AWSRequest(method="GET", url=f"https://{name}/", params={"Action": _ACTION})
    SigV4QueryAuth(credentials, _SERVICE, region, expires=_LIFETIME_S).add_auth(request)
    signed = parse_qsl(urlsplit(request.url).query, strict_parsing=True)
    fields = {"version": _VERSION, "host": name, "user-agent": _USER_AGENT}
    return orjson.dumps(fields | {key.lower(): value for key, value in signed})
