"""Topics and their settings: requests of Kafka 3.3 and later, in KRaft and in ZooKeeper mode.

`admin.topics.reader.TopicMetadataReader` lists and describes, `admin.topics.client.TopicAdmin`
changes as well; argument and result types are in `admin.topics.values`, and those that all clients
share in `admin.cluster`.
"""
