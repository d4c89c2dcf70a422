"""The metadata log read from its files."""
