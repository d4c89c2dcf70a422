"""Reads and changes the finalized features of real clusters, as Kafka's ``kafka-features`` does."""
