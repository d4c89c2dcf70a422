"""The fold over the messages of a lake, and what it remembers between batches."""
