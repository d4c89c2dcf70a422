"""The Faust app and its agents, from factories: importing this module starts and binds nothing."""

from collections.abc import Awaitable, Callable, Collection, Coroutine
from typing import Any

import faust

from featurewatch.agents.at_least_once import AtLeastOnceApp, OffsetTracker
from featurewatch.agents.processor import EventProcessor
from featurewatch.agents.settings import WorkerSettings
from featurewatch.kafka.client_config.clients import bus_login
from featurewatch.kafka.client_config.kerberos.settings import KerberosLogin
from featurewatch.kafka.client_config.login import Login
from featurewatch.kafka.security import from_properties
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.topics import Topic
from featurewatch.tables.faust_table import RowTable


def create_app(
    settings: WorkerSettings,
    tracker: OffsetTracker,
    claim: Callable[[Collection[int]], Awaitable[None]],
    check_membership: Callable[[str], Coroutine[Any, Any, None]],
) -> AtLeastOnceApp:
    """The Faust app of a worker, which commits the offsets of ``tracker``.

    ``claim`` and ``check_membership`` are those of `AtLeastOnceApp`.

    Must be called in the event loop in which the app will run. Creates the worker's data directory.
    """
    directory = settings.data_directory / settings.worker_id
    directory.mkdir(parents=True, exist_ok=True)
    store = "memory://" if settings.store == "memory" else "rocksdb://?driver=rocksdict"
    return AtLeastOnceApp(
        settings.app_id,
        tracker=tracker,
        claim=claim,
        check_membership=check_membership,
        autodiscover=False,
        broker=[f"kafka://{server}" for server in settings.bus.bootstrap_servers.split(",")],
        broker_credentials=_credentials(settings.bus),
        # With Faust's defaults the group waits a minute for a worker that was killed.
        consumer_group_instance_id=settings.instance_id,
        broker_session_timeout=settings.session_timeout_s,
        broker_heartbeat_interval=settings.session_timeout_s / 4,
        broker_commit_interval=0.5,
        consumer_auto_offset_reset="earliest",
        # A recreated topic is noticed after this time; the default is five minutes.
        consumer_metadata_max_age_ms=10_000,
        consumer_max_fetch_size=16 * 1024 * 1024,
        datadir=str(directory),
        store=store,
        Table=RowTable,
        table_standby_replicas=0,
        topic_partitions=settings.bus.partitions,
        # `ensure_topics` creates the topics, with equal partition counts and the right policies.
        topic_allow_declare=False,
        topic_disable_leader=True,
        # Faust's pages would show the tables to everyone; `serve_health` has the worker's own.
        web_enabled=False,
        worker_redirect_stdouts=False,
    )


def register_agent(
    app: AtLeastOnceApp, processor: EventProcessor, topic: Topic, full_name: str, table: Any
) -> None:
    """Registers the agent of an input topic; ``full_name`` is the topic's, with its prefix.

    The agent reads raw bytes, since the processor does the decoding.
    """

    async def agent(stream: Any) -> None:
        async for event in stream.events():
            await processor.process(topic, event, table)

    source = app.topic(
        full_name, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw"
    )
    # Faust keeps agents by name. Concurrency is 1: with more, Faust commits past messages that are
    # still being processed.
    app.agent(source, name=topic.short_name, concurrency=1)(agent)


def _credentials(bus: BusSettings) -> Any:
    """Faust's credentials from the bus' properties; None for a plain connection."""
    tls = from_properties(bus.properties).tls
    login = bus_login(bus.properties, bus.bootstrap_servers)
    if login is None:
        return faust.SSLCredentials(tls) if tls is not None else None
    if isinstance(login, Login):
        return faust.SASLCredentials(
            username=login.username,
            password=login.password,
            mechanism=login.mechanism,
            ssl_context=tls,
        )
    if isinstance(login, KerberosLogin):
        from featurewatch.agents.tickets import ticket_credentials
        from featurewatch.kafka.client_config.kerberos.ticket_source import checked_source

        return ticket_credentials(checked_source(login), tls)
    from featurewatch.agents.tokens import FaustTokens
    from featurewatch.kafka.client_config.oauth.token_source import token_source

    return faust.OAuthCredentials(oauth_cb=FaustTokens(token_source(login)), ssl_context=tls)
