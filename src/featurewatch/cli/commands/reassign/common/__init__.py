"""What the commands of reassignments share."""
