"""Settings, shared options and Kafka client properties of the commands."""
