"""The error of client properties, in a separate module so that commands that print it load fast."""


class SecurityError(ValueError):
    """A client property that cannot be used: the text names it and says what to write instead.

    ``key`` is the property to correct, for a message that says where it is; empty: none.
    """

    def __init__(self, text: str, key: str = "") -> None:
        super().__init__(text)
        self.key = key


class TokenError(Exception):
    """There is no token, or there are no credentials of AWS.

    One line that says why and what to do, without a secret.

    ``is_transient``: the same request may succeed a moment later.
    """

    def __init__(self, text: str, *, is_transient: bool = False) -> None:
        super().__init__(text)
        self.is_transient = is_transient
