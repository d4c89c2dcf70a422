"""The output of commands, and their reading of the topics."""
