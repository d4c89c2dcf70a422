"""Runs at the start of each of Spark's Python processes: Python imports a module of this name then.

**Archives are not read again.** Before each task Spark drops what Python knows of its path, and
Python 3.10 and 3.11 then read the directory of every archive on it anew: Spark's own jar among
them, an eighth of a second a task (CPython's issue 103200; mended in 3.12, and in Spark 4.2 by
SPARK-54744). What lies in an archive does not change while a process lives.

**One process is quieted.** Before the first batch of a stateful query Spark starts a process that
declares the state, and that prints what it does, which Spark hands on to stderr: six lines that say
nothing to anybody. There is no setting for it. What fails in it comes back as an exception, as
everywhere in Spark.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from zipimport import zipimporter

_TALKATIVE = "pyspark.sql.streaming.transform_with_state_driver_worker"

if sys.version_info < (3, 12):
    zipimporter.invalidate_caches = lambda _: None  # type: ignore[assignment,method-assign]

if _TALKATIVE in sys.orig_argv:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

# This module stands before one that the machine may have, which is to run all the same.
_own = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [place for place in sys.path if os.path.abspath(place or os.curdir) != _own]
_other = PathFinder.find_spec("sitecustomize", sys.path)
if _other is not None and _other.loader is not None:
    _other.loader.exec_module(module_from_spec(_other))
