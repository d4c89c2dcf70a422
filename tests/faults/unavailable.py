"""What a row raises on a machine that cannot make its fault."""


class UnavailableError(Exception):
    """The fault cannot be made here; the message says what is missing."""
