"""The reference controller as a state machine."""
