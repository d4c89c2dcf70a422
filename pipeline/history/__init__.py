"""What a lake knows of any moment of a cluster."""
