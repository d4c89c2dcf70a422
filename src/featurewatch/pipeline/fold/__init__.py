"""The fold over the messages of a lake, and the state that it carries from batch to batch."""
