"""Reads the levels and records of a release of Kafka from its own jars."""
