"""What the commands of ``featurewatch features`` share."""
