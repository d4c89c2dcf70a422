"""Kafka clusters that run as processes on this machine."""
