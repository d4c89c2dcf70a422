"""Silver and gold, which one query derives from bronze."""
