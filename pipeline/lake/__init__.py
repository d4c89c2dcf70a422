"""The lake: Delta tables, written by Spark and by Rust, read without a JVM."""
