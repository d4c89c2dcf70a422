"""Connections to Kafka nodes, for every source: addresses, frames, TLS and SASL."""
