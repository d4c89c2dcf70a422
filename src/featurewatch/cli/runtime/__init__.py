"""The runtime of commands: sources, services, the embedded bus, the lake."""
