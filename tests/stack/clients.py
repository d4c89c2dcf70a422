"""What a Kafka client sees of a cluster."""

from confluent_kafka.admin import AdminClient

from featurewatch.stack.kafka.cluster import Cluster


def broker_ids(cluster: Cluster) -> set[int]:
    """The ids of the brokers that a Kafka client lists."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    return set(admin.list_topics(timeout=60).brokers)
