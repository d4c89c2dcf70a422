"""The records and feature levels of Kafka's releases, generated from its own jars."""
