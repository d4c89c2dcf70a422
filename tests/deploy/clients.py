"""What a Kafka client sees of a cluster."""

from confluent_kafka.admin import AdminClient

from featurewatch.deploy.kafka.cluster import Cluster


def broker_ids(cluster: Cluster) -> set[int]:
    """What a Kafka client sees."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    return set(admin.list_topics(timeout=10).brokers)
