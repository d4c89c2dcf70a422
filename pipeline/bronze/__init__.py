"""Bronze: the topics as they came."""
