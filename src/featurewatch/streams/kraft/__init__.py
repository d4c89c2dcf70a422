"""The source that follows a KRaft metadata log, over the wire or from a log directory."""
