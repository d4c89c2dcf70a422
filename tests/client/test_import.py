"""The client is light."""

import subprocess
import sys

HEAVY = {"faust", "mode", "aiohttp", "pydantic", "pydantic_settings", "aiokafka", "kazoo", "rich"}


def test_the_client_loads_nothing_heavy():
    """Neither the import nor what reading loads."""
    code = (
        "import sys\n"
        "import featurewatch.client, featurewatch.client.sync\n"
        "assert 'confluent_kafka' not in sys.modules\n"
        "import featurewatch.client.following\n"
        "print(*{name.partition('.')[0] for name in sys.modules})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {"featurewatch", "confluent_kafka"} <= loaded
    assert not loaded & HEAVY
