"""Processes, the groups they belong to, their ports and their logs."""
