"""Follows znodes; pure: session events in, read requests and changes out."""
