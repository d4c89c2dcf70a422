"""Parts that the commands of reassignments share."""
