"""A Spark cluster of small processes on this machine."""

import contextlib
import json
import os
import subprocess
import time
import urllib.request
from pathlib import Path

import pyspark

from featurewatch.pipeline.spark.java import java_home
from featurewatch.pipeline.spark.session import BRIEF_JVM
from tests.processes import free_port

DEADLINE_S = 300.0
MASTER = "master"
WORKERS = ("one", "two")
"""The names of its processes; a worker's directory has its name."""
SMALL = {
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


class Standalone:
    """A Spark master and two workers with a core and ``memory`` each, on this machine.

    To Spark a core is a number: its processes take whatever is free. If they are ``pinned``, each
    worker's run on one separate core. A job waits forever if its executors want more memory than
    a worker has.
    """

    def __init__(self, directory: Path, memory: str = "600m", *, pinned: bool = False) -> None:
        self.directory = directory
        self._memory = memory
        cores = sorted(os.sched_getaffinity(0))
        self._cores = [{cores[0]}, {cores[-1]}] if pinned else [{*cores}, {*cores}]
        self.master = f"spark://127.0.0.1:{free_port()}"
        self._page = free_port()
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Starts them and waits until the master has registered both workers."""
        for name in (MASTER, *WORKERS):
            self.run(name)
        deadline = time.monotonic() + DEADLINE_S
        while self._workers() < 2:
            assert time.monotonic() < deadline, self.log
            time.sleep(0.2)

    def run(self, name: str) -> None:
        """Starts the master or a worker."""
        host, _, port = self.master.removeprefix("spark://").partition(":")
        page = ["--host", host, "--webui-port"]
        if name == MASTER:
            self._run(name, "master.Master", *page, str(self._page), "--port", port)
            return
        size = ["--cores", "1", "--memory", self._memory]
        where = ["--work-dir", str(self.directory / name), self.master]
        cores = self._cores[WORKERS.index(name)]
        self._run(name, "worker.Worker", *page, "0", *size, *where, cores=cores)

    def kill(self, name: str) -> None:
        """Ends the master or a worker as a power cut would."""
        self._running[name].kill()
        self._running[name].wait()

    def executors(self, name: str) -> list[int]:
        """The process ids of a worker's executors."""
        pid = self._running[name].pid
        children = Path(f"/proc/{pid}/task").glob("*/children")
        pids = [int(child) for file in children for child in file.read_text().split()]
        return [child for child in pids if _is_executor(child)]

    @property
    def log(self) -> str:
        """Their log."""
        return (self.directory / "daemons.log").read_text()

    def _run(self, name: str, program: str, *arguments: str, cores: set[int] | None = None) -> None:
        spark = Path(pyspark.__file__).parent
        pin = ["taskset", "--cpu-list", ",".join(map(str, sorted(cores)))] if cores else []
        command = [
            *pin,
            str(spark / "bin" / "spark-class"),
            f"org.apache.spark.deploy.{program}",
            *arguments,
        ]
        small = {"SPARK_DAEMON_MEMORY": "192m", "SPARK_LOCAL_IP": "127.0.0.1"}
        java = {
            "JAVA_HOME": str(java_home()),
            "SPARK_HOME": str(spark),
            "JDK_JAVA_OPTIONS": BRIEF_JVM,
        }
        with (self.directory / "daemons.log").open("ab") as log:
            env = {**os.environ, **small, **java}
            self._running[name] = subprocess.Popen(command, env=env, stdout=log, stderr=log)

    def _workers(self) -> int:
        with contextlib.suppress(OSError):
            address = f"http://127.0.0.1:{self._page}/json/"
            with urllib.request.urlopen(address, timeout=5) as answer:
                return int(json.load(answer)["aliveworkers"])
        return 0

    def stop(self) -> None:
        """Stops them."""
        for process in reversed(self._running.values()):
            process.terminate()
        for process in self._running.values():
            process.wait(30)


def _is_executor(pid: int) -> bool:
    try:
        return b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False  # it has ended
