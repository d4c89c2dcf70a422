"""The error of client properties, in a separate module so that commands that print it load fast."""


class SecurityError(ValueError):
    """A client property that cannot be used: the text names it and says what to write instead.

    ``key`` is the property to correct, for a message that says where it is; empty: none.
    """

    def __init__(self, text: str, key: str = "") -> None:
        super().__init__(text)
        self.key = key
