"""The reference system's side of Kafka's protocol."""
