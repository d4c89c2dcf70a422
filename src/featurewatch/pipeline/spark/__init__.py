"""Spark on this machine: Java, the session and its worker processes."""
