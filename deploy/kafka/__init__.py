"""Kafka clusters as processes of this machine."""
