"""What the forwarder's content store answers of jobs' Interests, by workload and phase.

Hadoop's examples, TestDFSIO and Spark's work (interop/hadoop/spark_job.py) on a site, on the
machines of bench/site_puts.py: jobs run on the machine without a disk, in one Java, with four maps
at a time; the store is that of the only forwarder, of its default size and policy, and empty at
the start. papers/002 has what an infinite store could answer (Figures 7 to 9).
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time

import hdfs
import site_hadoop
from harness import peers
from site_puts import Network

EXAMPLES = "org.apache.hadoop.examples"
JOB = site_hadoop.HERE.parent / "interop/hadoop/spark_job.py"
# Hadoop says so when it is asked for its progress ten times a second.
PROGRESS = "-Dmapreduce.client.progressmonitor.pollinterval=100"
MAPS = "-Dmapreduce.local.map.tasks.maximum=4"
SPLIT = "-Dmapreduce.input.fileinputformat.split.maxsize=8388608"
LOGGING = "log4j.logger.org.apache.hadoop.mapreduce.Job=INFO\n"
PHASES = [("startup", re.compile(r"")), ("map", re.compile(r"Running job")),
          ("reduce", re.compile(r"map \d+% reduce [1-9]"))]
WORDS = 200
RECORD = 100
SPARK_WORK = ("parquet", "orc", "words", "pages", "bayes", "kmeans", "streaming")


def missing(options):
    """Why this part cannot be measured, or None."""
    return site_hadoop.missing(options)


def phases(programs, workload, main, *words):
    """A job, by phases: seconds, Interests that the store answered, and those it did not."""
    argv = programs.argv("writer", main, *words)
    job = subprocess.Popen([str(word) for word in argv], cwd=programs.directory, env=programs.env,
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    left, said = list(PHASES), []
    marks = []
    while left:
        # The first of them has begun when the program has.
        name, begin = left.pop(0)
        for line in job.stderr if marks else [""]:
            said.append(line)
            if begin.search(line):
                break
        else:
            break
        marks.append((name, time.monotonic(), programs.store()))
    said += list(job.stderr)
    if job.wait():
        sys.exit(f"{workload}: {''.join(said)[-3000:]}")
    marks.append((None, time.monotonic(), programs.store()))
    for (name, began, before), (_, ended, after) in zip(marks, marks[1:]):
        yield row(workload, name, ended - began, before, after)


def row(workload, phase, seconds, before, after):
    """What there is to say of a phase."""
    hits, misses = (now - then for now, then in zip(after, before))
    return {"part": "hits", "workload": workload, "phase": phase, "s": seconds,
            "hits": hits, "misses": misses}


def whole(programs, workload, main, *words):
    """A program without phases."""
    found = programs.timed(workload, main, *words)
    return row(workload, "all", found["wall_s"], (0, 0),
               (found["store_hits"], found["store_misses"]))


def text_file(path, size):
    """Words as a language has them: few are most."""
    words = [f"word{number}" for number in range(WORDS)]
    ranks = [WORDS // (number + 1) + 1 for number in range(WORDS)]
    line = " ".join(word for word, rank in zip(words, ranks) for _ in range(rank)) + "\n"
    path.write_text(line * (size // len(line) + 1))


def hadoop(programs, directory, options):
    """Hadoop's own workloads; what one writes the next one reads."""
    flags, size = (PROGRESS, MAPS, SPLIT), options.size // 4
    text = directory / "text"
    text_file(text, size)
    yield whole(programs, "put of a text", hdfs.SHELL, "-put", text, "/text")
    for again in ("", ", again"):
        yield from phases(programs, "WordCount" + again, f"{EXAMPLES}.WordCount", *flags, "/text",
                          f"/counted{again.strip(', ')}")
    tera = f"{EXAMPLES}.terasort"
    rows = size // RECORD
    yield from phases(programs, "TeraGen", f"{tera}.TeraGen", *flags, "-Dmapreduce.job.maps=4",
                      rows, "/gen")
    yield from phases(programs, "TeraSort", f"{tera}.TeraSort", *flags,
                      "-Dmapreduce.job.reduces=2", "/gen", "/sorted")
    yield from phases(programs, "TeraValidate", f"{tera}.TeraValidate", *flags, "/sorted",
                      "/report")
    for what in ("write", "read"):
        yield whole(programs, f"TestDFSIO {what}", hdfs.FILES_BENCHMARK, f"-{what}", "-nrFiles",
                    site_hadoop.FILES, "-size", f"{max(size >> 20, 1)}MB", "-resFile",
                    directory / f"dfsio-{what}")


def spark(programs, directory, properties):
    """Spark's work, each kind in a program of its own: it writes, reads and writes anew."""
    env = {**programs.env, "SPARK_LOCAL_DIRS": str(directory), "SPARK_LOCAL_IP": "127.0.0.1",
           "PYSPARK_PYTHON": str(peers.SPARK_PYTHON)}
    for work in SPARK_WORK:
        local = directory / f"spark-{work}"
        local.mkdir()
        argv = [peers.SPARK_PYTHON, JOB, programs.jars[0], json.dumps(properties), "ndn://lab",
                local.as_uri(), work]
        argv = programs.network.leaf("writer").inside([str(word) for word in argv])
        began, before = time.monotonic(), programs.store()
        done = subprocess.run(argv, cwd=directory, env=env, capture_output=True, check=False)
        if done.returncode:
            sys.exit(f"Spark, {work}: {done.stderr.decode(errors='replace')[-3000:]}")
        yield row(f"Spark, {work}", "all", time.monotonic() - began, before, programs.store())


def measure(directory, options):
    """All workloads at one site for each number of replicas."""
    network = Network(options.mtu, directory, max(3, *options.replicas))
    try:
        for replicas in options.replicas:
            place = directory / f"hits{replicas}"
            place.mkdir()
            with site_hadoop.site(network, place, replicas, options) as (programs, properties):
                with open(programs.settings / "log4j.properties", "a", encoding="utf-8") as out:
                    out.write(LOGGING)
                rows = [hadoop(programs, place, options)]
                if os.access(peers.SPARK_PYTHON, os.X_OK):
                    rows.append(spark(programs, place, properties))
                for workload in rows:
                    for found in workload:
                        yield dict(found, replicas=replicas)
            shutil.rmtree(place)
    finally:
        network.lab.close()


def show(found, options):
    """A table."""
    print(f"\nWhat the forwarder's store answered, {options.size // 4} octets a workload, "
          f"{options.transport}, MTU {options.mtu}")
    print("| workload | phase | replicas | s | Interests | from the store |\n"
          "|---|---|---|---|---|---|")
    for one in found:
        if one["part"] != "hits":
            continue
        asked = one["hits"] + one["misses"]
        part = f"{one['hits'] / asked:.2f}" if asked else "–"
        print(f"| {one['workload']} | {one['phase']} | {one['replicas']} | {one['s']:.1f} "
              f"| {asked} | {part} |")
