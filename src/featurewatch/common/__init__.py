"""Code that is independent of Kafka: text, threads, tasks, YAML, progress, and HTTP ports."""
