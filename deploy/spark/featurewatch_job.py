"""What spark-submit runs: ``featurewatch pipeline …`` on the master that it was submitted to.

    spark-submit --master spark://host:7077 … featurewatch_job.py run --once --bus … --lake …

`submit.sh` beside it gives spark-submit all that it needs to be told.
"""

import runpy
import sys

from pyspark import SparkConf, SparkContext

SparkContext._ensure_initialized()  # else the settings are those of a process that nobody submitted
master = SparkConf().get("spark.master", "local[*]")
sys.argv = ["featurewatch", "pipeline", *sys.argv[1:], "--master", str(master)]
runpy.run_module("featurewatch", run_name="__main__")
