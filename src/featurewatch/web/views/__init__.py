"""Views of the API that are computed on request."""
