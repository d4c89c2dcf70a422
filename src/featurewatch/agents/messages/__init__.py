"""What the worker finds out about single input messages, and what it writes because of them."""
