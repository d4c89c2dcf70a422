"""Runs featurewatch, and writes the number of its asyncio tasks to ``SOAK_TASKS`` every second."""

import asyncio.tasks
import os
import threading
import time
from pathlib import Path

from featurewatch.cli.main import main


def _count(path: Path) -> None:
    # Where asyncio keeps them; the public function needs the running loop.
    scheduled = getattr(asyncio.tasks, "_scheduled_tasks", None)
    if scheduled is None:
        scheduled = asyncio.tasks._all_tasks  # type: ignore[attr-defined]
    while True:
        time.sleep(1)
        try:
            count = sum(not task.done() for task in list(scheduled))
        except RuntimeError:  # it changed meanwhile
            continue
        path.write_text(f"{count}")


threading.Thread(target=_count, args=(Path(os.environ["SOAK_TASKS"]),), daemon=True).start()
main()
