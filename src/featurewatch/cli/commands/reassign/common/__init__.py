"""What the commands of reassignments and elections share."""
