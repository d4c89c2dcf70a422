#!/bin/sh
# Runs a command of featurewatch's pipeline on a Spark cluster; the driver is this machine.
#
#   submit.sh spark://host:7077 run --once --bus kafka-1:9092 --lake s3a://bucket/lake
#   submit.sh spark://host:7077 audit --lake s3a://bucket/lake
#
# Environment:
#   FEATUREWATCH_PYTHON         the Python in which featurewatch[pipeline] is installed (python3)
#   FEATUREWATCH_ARCHIVE        a packed environment for the executors (venv-pack); without it they
#                               need the same Python at the same path as this machine
#   FEATUREWATCH_JARS           the jars beside Spark's own, with commas; "-": the cluster has them.
#                               They are fetched once from Maven Central unless this is given
#   FEATUREWATCH_SPARK_OPTIONS  more options for spark-submit
set -eu

if [ $# -lt 2 ]; then
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
master=$1
shift

python=${FEATUREWATCH_PYTHON:-python3}
job=$(cd "$(dirname "$0")" && pwd)/featurewatch_job.py
home=$("$python" -c 'import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parent)')
jars=${FEATUREWATCH_JARS:-$("$python" -c '
from featurewatch.cli.runtime.spark_jars import spark_jars
from featurewatch.stack.java.jars import Cache, default_cache
print(*spark_jars(Cache(default_cache())), sep=",")')}
log4j=$("$python" -c '
from importlib.resources import files
print(files("featurewatch.pipeline.spark") / "log4j2.properties")')

PYSPARK_DRIVER_PYTHON=$python
PYSPARK_PYTHON=$("$python" -c 'import sys; print(sys.executable)')
set -- "$job" "$@"
if [ -n "${FEATUREWATCH_ARCHIVE:-}" ]; then
    PYSPARK_PYTHON=./environment/bin/python
    set -- --archives "$FEATUREWATCH_ARCHIVE#environment" "$@"
fi
if [ "$jars" != - ]; then
    set -- --jars "$jars" "$@"
fi
export PYSPARK_DRIVER_PYTHON PYSPARK_PYTHON
# shellcheck disable=SC2086 # several options in one variable are several words
exec env SPARK_HOME="$home" "$home/bin/spark-submit" --master "$master" --deploy-mode client \
    --name featurewatch --driver-java-options "-Dlog4j2.configurationFile=$log4j" \
    ${FEATUREWATCH_SPARK_OPTIONS:-} "$@"
