"""Parts that the commands of ``featurewatch features`` share."""
