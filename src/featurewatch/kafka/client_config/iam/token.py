"""MSK's signed token for OAUTHBEARER: a signed URL in base64, made by AWS's own signer."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from botocore.credentials import ReadOnlyCredentials


def signed_token(region: str, credentials: "ReadOnlyCredentials") -> str:
    """The text of a token for the clusters of a region, signed now."""
    from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
    from botocore.credentials import CredentialProvider

    class Given(CredentialProvider):  # type: ignore[misc]  # botocore is not typed
        """Credentials that are there already."""

        def load(self) -> "ReadOnlyCredentials":
            return credentials

    text, _ = MSKAuthTokenProvider.generate_auth_token_from_credentials_provider(region, Given())
    return str(text)
