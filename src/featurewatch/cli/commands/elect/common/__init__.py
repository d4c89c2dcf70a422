"""What the commands of elections share."""
