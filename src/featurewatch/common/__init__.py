"""What has nothing to do with Kafka: text, threads, tasks, YAML, progress, and HTTP ports."""
