"""What flows: topics, the events on them, their codecs, and one sub-package per source."""
