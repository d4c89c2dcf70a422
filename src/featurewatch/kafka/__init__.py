"""Speaking to Kafka: connections, frames, TLS and SASL, client properties, messages, releases."""
