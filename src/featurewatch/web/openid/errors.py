"""Why a sign-in failed; in a separate module, so that a page without a provider starts fast."""


class SignInError(Exception):
    """A sign-in failed: one line for the user and the log, without a secret."""


class UnknownKeyError(SignInError):
    """The token is signed with a key that is not among the given ones."""
