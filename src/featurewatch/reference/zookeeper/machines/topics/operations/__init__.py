"""The operations of the reference controller on topics, partitions and replicas.

Each is a task that reads and writes ZooKeeper, changes states, and so sends requests to brokers.
`controller` gives each event to its operation, one at a time, in the order of their arrival.
"""
