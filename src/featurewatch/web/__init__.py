"""The page for operators and its HTTP API: reads the output topics, and serves what they hold."""
