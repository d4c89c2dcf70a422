"""The server side of Kafka's protocol, as the reference nodes implement it."""
