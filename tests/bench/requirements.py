"""What a bench needs of the machine."""


class MissingRequirementError(Exception):
    """A bench cannot run here; the text says what is missing."""
