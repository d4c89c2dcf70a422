"""The reference controller's partitions and replicas: state machines without input or output.

`dialect` describes the document Kafka Controller Internals and released Kafka as data. `context`
holds the controller's memory, `znodes` reads and writes the bytes in ZooKeeper, `state_store`
writes partition states under the controller's fence, and `request_batch` collects the requests to
brokers. `partition_machine` and `replica_machine` change states; `operations` calls them.
"""
