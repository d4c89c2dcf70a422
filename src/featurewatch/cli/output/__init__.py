"""What commands print, and how they read the topics."""
