"""Runs at the start of each of Spark's Python processes, which import a module of this name.

**Installed packages are preferred to archives.** Spark puts itself on the path as archives, before
the same package as installed. Imported from an archive it is compiled in each process, half a
second each time.

**One process is silenced.** Before the first batch of a stateful query Spark starts a process that
declares the state and prints its progress, which Spark forwards to stderr: six useless lines, for
which there is no setting. Its failures are raised as exceptions all the same.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_STATE_DECLARATION = "pyspark.sql.streaming.transform_with_state_driver_worker"

if _STATE_DECLARATION in sys.orig_argv:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

# This module hides another sitecustomize of the machine, which must run all the same.
_own = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != _own]
_other = PathFinder.find_spec("sitecustomize", sys.path)
if _other is not None and _other.loader is not None:
    _other.loader.exec_module(module_from_spec(_other))

# The archives of a Spark other than the installed one stay on the path.
_unpacked = [entry for entry in sys.path if not entry.endswith((".zip", ".jar"))]
_spark = PathFinder.find_spec("pyspark", _unpacked)
if _spark is not None and _spark.origin is not None:
    _installed = os.path.join(os.path.dirname(_spark.origin), "")
    sys.path[:] = [entry for entry in sys.path if not entry.startswith(_installed)]
