"""What Spark's users do, once below each of two paths. Run by the Python that has pyspark.

usage: spark_job.py JAR CONF NAMED LOCAL [WORK...]     (default: all)

CONF is a JSON object of Hadoop properties, NAMED a path of a site (`ndn://…`), LOCAL one of the
local file system, or of HDFS.
Prints for each kind of work, a line each, its name and a JSON object: what was
found below NAMED, what was found below LOCAL, and the seconds that each took.
"""

import json
import operator
import random
import sys
import time

from pyspark.ml.classification import NaiveBayes
from pyspark.ml.clustering import KMeans
from pyspark.ml.linalg import Vectors
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

ROWS = 20_000
PAGES = 200
STREAM_ROWS = 500


def session(jar, properties):
    builder = (SparkSession.builder.master("local[2]").appName("byname")
               .config("spark.jars", jar)
               .config("spark.ui.enabled", "false")
               .config("spark.ui.showConsoleProgress", "false")
               .config("spark.sql.shuffle.partitions", "2")
               .config("spark.default.parallelism", "2")
               .config("spark.sql.sources.partitionOverwriteMode", "dynamic")
               .config("spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version", "1"))
    for key, value in properties.items():
        builder = builder.config(f"spark.hadoop.{key}", value)
    return builder.getOrCreate()


def events(spark, rows=ROWS):
    numbers = spark.range(rows)
    return numbers.select("id", (F.col("id") % 3).alias("run"), F.sin("id").alias("energy"),
                          F.concat(F.lit("event "), "id").alias("title"))


def summary(frame):
    """What a table has, whatever the order of its rows."""
    row = frame.agg(F.count("*"), F.sum(F.hash(*sorted(frame.columns))), F.min("id"),
                    F.max("id")).first()
    return [str(cell) for cell in row]


def columnar(form):
    """Written by partitions, one of which is written anew; parts of columns are read."""

    def work(spark, base):
        path = f"{base}/events.{form}"
        events(spark).write.format(form).partitionBy("run").save(path)
        first = summary(spark.read.format(form).load(path))
        anew = events(spark).filter("run = 1 and id < 9000")
        anew.write.format(form).partitionBy("run").mode("overwrite").save(path)
        read = spark.read.format(form).load(path)
        part = read.filter("run = 1 and energy > 0.5").select("title").orderBy("title")
        return [first, summary(read), part.count(), part.first()["title"]]

    return work


def word_count(spark, base):
    lines = [f"word{at % 7} of many {at % 2}" for at in range(5000)]
    spark.sparkContext.parallelize(lines, 3).saveAsTextFile(f"{base}/lines")
    words = spark.sparkContext.textFile(f"{base}/lines").flatMap(str.split)
    words.map(lambda word: (word, 1)).reduceByKey(operator.add).saveAsTextFile(f"{base}/words")
    return sorted(spark.sparkContext.textFile(f"{base}/words").collect())


def page_rank(spark, base):
    chance = random.Random(7)
    links = [f"{page} {chance.randrange(PAGES)}" for page in range(PAGES) for _ in range(5)]
    spark.sparkContext.parallelize(links, 2).saveAsTextFile(f"{base}/links")
    pairs = spark.sparkContext.textFile(f"{base}/links").map(lambda line: tuple(line.split()))
    targets = pairs.distinct().groupByKey().mapValues(sorted).cache()
    ranks = targets.mapValues(lambda _: 1.0)
    for _ in range(3):
        given = targets.join(ranks).flatMap(
            lambda page: [(target, page[1][1] / len(page[1][0])) for target in page[1][0]])
        ranks = given.reduceByKey(operator.add).mapValues(lambda rank: 0.15 + 0.85 * rank)
    ranks.map(lambda rank: f"{rank[0]} {rank[1]:.9f}").saveAsTextFile(f"{base}/ranks")
    return sorted(spark.sparkContext.textFile(f"{base}/ranks").collect())


def points(spark, base):
    chance = random.Random(11)
    rows = [(float(at % 3), Vectors.dense([at % 3 * 5 + chance.random(), chance.random()]))
            for at in range(600)]
    path = f"{base}/points.parquet"
    spark.createDataFrame(rows, ["label", "features"]).coalesce(1).write.save(path)
    return spark.read.load(path)


def naive_bayes(spark, base):
    model = NaiveBayes(modelType="gaussian").fit(points(spark, base))
    model.write().save(f"{base}/model")
    loaded = type(model).load(f"{base}/model")
    found = loaded.transform(spark.read.load(f"{base}/points.parquet"))
    return [found.filter("prediction = label").count(), str(loaded.theta.toArray().round(9))]


def k_means(spark, base):
    model = KMeans(k=3, seed=5).fit(points(spark, base))
    model.write().overwrite().save(f"{base}/model")
    loaded = type(model).load(f"{base}/model")
    return sorted(str(center.round(9)) for center in loaded.clusterCenters())


def streaming(spark, base):
    """Two runs of a query with one checkpoint: the second sees what came between them, once."""
    schema = events(spark).schema
    counts = []
    for turn in range(2):
        rows = events(spark, STREAM_ROWS).withColumn("id", F.col("id") + turn * STREAM_ROWS)
        rows.coalesce(1).write.mode("append").parquet(f"{base}/incoming")
        query = (spark.readStream.schema(schema).parquet(f"{base}/incoming").writeStream
                 .format("parquet").option("checkpointLocation", f"{base}/checkpoint")
                 .trigger(availableNow=True).start(f"{base}/outgoing"))
        query.awaitTermination()
        counts.append(summary(spark.read.parquet(f"{base}/outgoing")))
    return counts


WORK = {"parquet": columnar("parquet"), "orc": columnar("orc"), "words": word_count,
        "pages": page_rank, "bayes": naive_bayes, "kmeans": k_means, "streaming": streaming}


def main(jar, conf, named, local, *wanted):
    spark = session(jar, json.loads(conf))
    spark.sparkContext.setLogLevel("ERROR")
    for name in wanted or WORK:
        found = {}
        for kind, base in (("named", named), ("local", local)):
            begin = time.monotonic()
            found[kind] = WORK[name](spark, f"{base}/{name}")
            found[f"{kind}_seconds"] = round(time.monotonic() - begin, 1)
        print(name, json.dumps(found), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
