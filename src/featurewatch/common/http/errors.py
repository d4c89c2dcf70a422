"""The errors of HTTP ports, in a separate module so that commands that print them load fast."""


class PortTakenError(Exception):
    """The address cannot be listened on; the text names it and says what to do."""


class WebConfigError(ValueError):
    """TLS or logins of an HTTP port cannot be used as they are set up; the text names the key."""
