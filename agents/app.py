"""The Faust app, from a factory: importing this module starts and binds nothing."""

import ssl
from typing import Any

import faust

from agents.durable import DurableApp, Ledger
from agents.settings import WorkerSettings
from streams.bus import BusSettings
from tables.image_table import RowTable


def create_app(settings: WorkerSettings, ledger: Ledger) -> DurableApp:
    """The app of a worker; must be called in the event loop in which it will run."""
    directory = settings.data_directory / settings.worker_id
    directory.mkdir(parents=True, exist_ok=True)
    store = "memory://" if settings.store == "memory" else "rocksdb://?driver=rocksdict"
    return DurableApp(
        settings.app_id,
        ledger=ledger,
        autodiscover=False,
        broker=[f"kafka://{server}" for server in settings.bus.bootstrap_servers.split(",")],
        broker_credentials=_credentials(settings.bus),
        # Faust's defaults wait a minute for a worker that was killed.
        consumer_group_instance_id=f"{settings.app_id}-{settings.worker_id}",
        broker_session_timeout=settings.session_timeout_s,
        broker_heartbeat_interval=settings.session_timeout_s / 4,
        broker_commit_interval=0.5,
        consumer_auto_offset_reset="earliest",
        consumer_max_fetch_size=16 * 1024 * 1024,
        datadir=str(directory),
        store=store,
        Table=RowTable,
        table_standby_replicas=0,
        topic_partitions=settings.bus.partitions,
        # We make the topics ourselves, with equal partition counts and the right policies.
        topic_allow_declare=False,
        topic_disable_leader=True,
        # Its pages would show tables to everyone; ours are elsewhere.
        web_enabled=False,
        worker_redirect_stdouts=False,
    )


def _credentials(bus: BusSettings) -> faust.types.auth.CredentialsT | None:
    """Faust's credentials from librdkafka's properties."""
    given = {str(name): value for name, value in bus.properties.items()}
    protocol = str(given.get("security.protocol", "plaintext")).upper()
    if protocol == "PLAINTEXT":
        return None
    context = _ssl_context(given) if protocol.endswith("SSL") else None
    if protocol == "SSL":
        return faust.SSLCredentials(context)
    mechanism = given.get("sasl.mechanism", given.get("sasl.mechanisms", "PLAIN"))
    return faust.SASLCredentials(
        username=given.get("sasl.username"),
        password=given.get("sasl.password"),
        mechanism=mechanism,
        ssl_context=context,
    )


def _ssl_context(given: dict[str, Any]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=given.get("ssl.ca.location"))
    if certificate := given.get("ssl.certificate.location"):
        context.load_cert_chain(
            certificate, given.get("ssl.key.location"), given.get("ssl.key.password")
        )
    if given.get("ssl.endpoint.identification.algorithm") == "none":
        context.check_hostname = False
    return context
