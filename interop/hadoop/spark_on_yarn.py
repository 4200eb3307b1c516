"""Columns and words below a path, written and read by executors on YARN.

usage: spark-submit --master yarn spark_on_yarn.py PATH
"""

import operator
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

ROWS = 20_000


def main(base):
    spark = SparkSession.builder.getOrCreate()
    events = spark.range(ROWS).select("id", (F.col("id") % 3).alias("run"))
    events.write.partitionBy("run").parquet(f"{base}/events")
    counts = spark.read.parquet(f"{base}/events").groupBy("run").count().orderBy("run")
    counts.coalesce(1).write.csv(f"{base}/counts")
    lines = [f"word{at % 7} of many" for at in range(5000)]
    spark.sparkContext.parallelize(lines, 2).saveAsTextFile(f"{base}/lines")
    words = spark.sparkContext.textFile(f"{base}/lines").flatMap(str.split)
    found = words.map(lambda word: (word, 1)).reduceByKey(operator.add)
    found.map(lambda pair: f"{pair[0]} {pair[1]}").coalesce(1).saveAsTextFile(f"{base}/words")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
