"""Runs at the start of each of Spark's Python processes: Python imports a module of this name then.

**What is installed is taken from there.** Spark puts itself on the path as archives, before the
installed package that has the same. Imported from an archive it is compiled in each process, half a
second each time; and before each task Spark drops what Python knows of its path, whereupon Python
3.10 and 3.11 read every archive's directory anew, an eighth of a second a task (CPython's issue
103200, mended in 3.12; Spark does it no more since 4.2, SPARK-54744).

**One process is quieted.** Before the first batch of a stateful query Spark starts a process that
declares the state, and that prints what it does, which Spark hands on to stderr: six lines that say
nothing to anybody. There is no setting for it. What fails in it comes back as an exception, as
everywhere in Spark.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_TALKATIVE = "pyspark.sql.streaming.transform_with_state_driver_worker"

if _TALKATIVE in sys.orig_argv:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

# This module stands before one that the machine may have, which is to run all the same.
_own = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [place for place in sys.path if os.path.abspath(place or os.curdir) != _own]
_other = PathFinder.find_spec("sitecustomize", sys.path)
if _other is not None and _other.loader is not None:
    _other.loader.exec_module(module_from_spec(_other))

# Of another Spark than the installed one the archives stay.
_unpacked = [place for place in sys.path if not place.endswith((".zip", ".jar"))]
_spark = PathFinder.find_spec("pyspark", _unpacked)
if _spark is not None and _spark.origin is not None:
    _installed = os.path.join(os.path.dirname(_spark.origin), "")
    sys.path[:] = [place for place in sys.path if not place.startswith(_installed)]
