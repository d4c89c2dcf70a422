"""Bronze: the messages of the topics as they came."""
