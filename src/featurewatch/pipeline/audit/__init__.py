"""The audit: compares the worker's live outputs with what the lake recomputes."""
