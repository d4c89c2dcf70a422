"""What znodes hold, read out of their bytes."""
