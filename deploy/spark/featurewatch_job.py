"""The script that spark-submit runs: ``featurewatch pipeline …`` on the submitted master.

    spark-submit --master spark://host:7077 … featurewatch_job.py run --once --bus … --lake …

`submit.sh` beside it passes all required options to spark-submit.
"""

import runpy
import sys

from pyspark import SparkConf, SparkContext

SparkContext._ensure_initialized()  # otherwise SparkConf lacks the settings of spark-submit
master = SparkConf().get("spark.master", "local[*]")
sys.argv = ["featurewatch", "pipeline", *sys.argv[1:], "--master", str(master)]
runpy.run_module("featurewatch", run_name="__main__")
