"""The Delta tables below the lake's root: their registry, their writers and a reader without
Spark."""
