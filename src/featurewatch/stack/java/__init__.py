"""Java on this machine: the runtime, jars from Maven Central and class archives."""
