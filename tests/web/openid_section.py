"""A section ``openid_connect`` of the file with logins."""

from pathlib import Path
from typing import Any

SECRET = "pr0vider-s3cret"  # noqa: S105 - of tests
CLIENT = "featurewatch-page"
CALLBACK = "https://watch.example.org/openid-callback"


def section(issuer: str, directory: Path, **more: Any) -> dict[str, Any]:
    """The section of the file."""
    (directory / "secret").write_text(SECRET + "\n")
    return {
        "issuer": issuer,
        "client_id": CLIENT,
        "client_secret_file": "secret",
        "redirect_uri": CALLBACK,
        **more,
    }
