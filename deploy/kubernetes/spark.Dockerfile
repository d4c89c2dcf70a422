# The image of the pipeline on Kubernetes, for the driver and for its executors:
#   python -m pip wheel --no-deps -w dist .
#   docker build -f deploy/kubernetes/spark.Dockerfile -t featurewatch-spark:0.1.0 .
FROM apache/spark:4.2.0-scala2.13-java17-ubuntu
USER 0
# The distribution removes a version when it has a newer one.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends python3.11 python3.11-venv \
    && rm -rf /var/lib/apt/lists/*
COPY dist/*.whl constraints.txt /tmp/
RUN python3.11 -m venv /opt/featurewatch \
    && /opt/featurewatch/bin/pip install --no-cache-dir -c /tmp/constraints.txt \
        "$(echo /tmp/featurewatch-*.whl)[pipeline]" \
    && rm /tmp/*.whl /tmp/constraints.txt
COPY deploy/spark /opt/featurewatch/spark
# Fetch the connectors when the image is built, so that nothing is fetched at run time.
RUN /opt/featurewatch/bin/python -c 'import shutil; \
from featurewatch.cli.runtime.spark_jars import spark_jars; \
from featurewatch.stack.java.jars import Cache, default_cache; \
[shutil.copy(jar, "/opt/spark/jars") and shutil.copy(jar, __import__("pyspark").__path__[0] + "/jars") \
for jar in spark_jars(Cache(default_cache()))]'
ENV FEATUREWATCH_PYTHON=/opt/featurewatch/bin/python FEATUREWATCH_JARS=-
# spark
USER 185
