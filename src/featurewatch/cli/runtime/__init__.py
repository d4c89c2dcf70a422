"""What commands run in: sources, services, the embedded bus, the lake."""
