"""Rates of a catalog, beside the local file system and HDFS's name node.

* local: empty files by one process, not synced, and each with its directory synced
* core: the catalog without packets and signatures, in memory and durable, by transactions of 1 and
  of 256 commands (crates/catalog/examples/rates.rs)
* HDFS: NNThroughputBenchmark, a name node without network, 64 threads
* byname: `byname site bench` against a head over a forwarder, on catalogs that have some files
  already; the octets and the memory that each of these takes. With `--engine postgres` they are in
  a database of the run's own, and the load time is that of `byname site move-engine`
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import hdfs
import postgres
from measure import process_rss_bytes
from site_rig import Site

PHASES = ("create", "stat", "ask", "list", "rename", "remove")
FILES_OF_LOCAL = 5000


def local(directory, is_synced):
    """One process on the local file system."""
    top = directory / "local"
    top.mkdir()
    count = FILES_OF_LOCAL // 10 if is_synced else FILES_OF_LOCAL
    old = [top / f"file{number}" for number in range(count)]
    new = [top / f"renamed{number}" for number in range(count)]
    handle = os.open(top, os.O_RDONLY)

    def synced(work):
        work()
        if is_synced:
            os.fsync(handle)

    def create(path):
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        if is_synced:
            os.fsync(file)
        os.close(file)

    phases = {
        "create": lambda: [synced(lambda path=path: create(path)) for path in old],
        "stat": lambda: [os.stat(path) for path in old],
        "list": lambda: [entry.stat() for entry in os.scandir(top)],
        "rename": lambda: [synced(lambda pair=pair: os.rename(*pair)) for pair in zip(old, new)],
        "remove": lambda: [synced(lambda path=path: os.unlink(path)) for path in new],
    }
    label = "local file system" + (", each synced" if is_synced else "")
    for phase in phases:
        began = time.monotonic()
        phases[phase]()
        yield row(label, phase, count / (time.monotonic() - began))
    os.close(handle)
    shutil.rmtree(top)


def row(label, phase, per_s, **more):
    """One rate."""
    return {"part": "rates", "program": label, "phase": phase, "per_s": per_s, **more}


def lines(output):
    """Objects of a program that prints one a line."""
    return [json.loads(line) for line in output.splitlines()]


def core(options, directory):
    """The catalog in this process's way: no packets."""
    for engine, batch in (("memory", 1), ("embedded", 1), ("embedded", 256)):
        path = directory / "core.redb"
        target = "memory" if engine == "memory" else path
        count = options.core_files // (20 if (engine, batch) == ("embedded", 1) else 1)
        argv = [options.rates, "core", target, count, batch]
        done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, check=True)
        path.unlink(missing_ok=True)
        for one in lines(done.stdout):
            label = f"core, {engine}, {batch} a transaction"
            yield row(label, one["phase"], one["per_s"])


def catalog(options, directory, files):
    """A head whose catalog has some files already, in a file or in a database of this run's own."""
    place = (options.keep or directory) / f"catalog{files}"
    place.mkdir(parents=True, exist_ok=True)
    site = Site(options.byname, place)
    loaded = load(options, site, files)
    if options.load_only:
        return
    server = postgres.Server(options.dir) if options.engine == "postgres" else None
    try:
        if server:
            loaded = move(site, server)
        site.start_forwarder()
        began = time.monotonic()
        site.start_head()
        start_s = time.monotonic() - began
        rss_begin = site.rss_bytes()["head"]
        yield from site_bench(options, site, files)
        yield {"part": "catalog", "files": files, "start_s": start_s, **loaded,
               "rss_start_bytes": rss_begin, "rss_end_bytes": site.rss_bytes()["head"]}
    finally:
        site.stop()
        if server:
            server.stop()
    if not options.keep:
        shutil.rmtree(place)


def load(options, site, files):
    """Makes the catalog, unless it was kept; how long that took, and how large it was then."""
    record = site.directory / "loaded.json"
    if record.exists():
        return json.loads(record.read_text(encoding="utf-8"))
    site.run("site", "init", "/lab", "--operator", "op", "--dir", "site")
    engine = site.directory / "site/catalog.redb"
    empty_bytes = engine.stat().st_size
    began = time.monotonic()
    subprocess.run([str(options.rates), "load", str(engine), str(files), "op"], check=True,
                   capture_output=True)
    loaded = {"load_s": time.monotonic() - began,
              "stored_bytes": engine.stat().st_size - empty_bytes}
    record.write_text(json.dumps(loaded), encoding="utf-8")
    return loaded


def move(site, server):
    """Takes the catalog into a database; how long that took, and how large it is there."""
    address = server.start()
    empty_bytes = server.stored_bytes()
    began = time.monotonic()
    site.run("site", "move-engine", "/lab", address, "--dir", "site")
    return {"load_s": time.monotonic() - began,
            "stored_bytes": server.stored_bytes() - empty_bytes}


def site_bench(options, site, files):
    """`byname site bench`, by one client and by many."""
    for clients, in_flight, count in ((1, 1, options.closed_files), (16, 64, options.open_files)):
        before = site.cpu_s()
        argv = site.command("site", "bench", "/lab/bench", "--json", "--clients", str(clients),
                            "--in-flight", str(in_flight), "--files", str(count), *site.connect())
        done = subprocess.run(argv, cwd=site.directory, env=site.environment, check=False,
                              capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"byname site bench: {done.stderr}")
        after = site.cpu_s()
        cpu = {name: round(after[name] - before[name], 3) for name in after}
        for one in lines(done.stdout):
            kind = "byname over PostgreSQL" if options.engine == "postgres" else "byname"
            label = f"{kind}, {clients} × {in_flight} in flight, {files} files there"
            yield row(label, one["phase"], one["per_s"], median_us=one["median_us"],
                      p99_us=one["p99_us"], servers_cpu_s=cpu)


def measure(directory, options):
    """Everything in turn."""
    if options.load_only:
        for files in options.catalogs:
            yield from catalog(options, directory, files)
        return
    yield from local(directory, False)
    yield from local(directory, True)
    if options.engine == "embedded":
        yield from core(options, directory)
    if options.hdfs:
        found = hdfs.rates(directory, options.core_files, 64)
        for phase, per_s in found.items():
            yield row("HDFS name node, 64 threads in it", phase, per_s)
    for files in options.catalogs:
        yield from catalog(options, directory, files)


def show(found):
    """Two tables: rates, and what a file takes."""
    rates = [one for one in found if one["part"] == "rates"]
    labels = list(dict.fromkeys(one["program"] for one in rates))
    print("| a second | " + " | ".join(PHASES) + " |\n|---|" + "---|" * len(PHASES))
    for label in labels:
        ones = {one["phase"]: one for one in rates if one["program"] == label}
        cells = [cell(ones.get(phase)) for phase in PHASES]
        print(f"| {label} | " + " | ".join(cells) + " |")
    catalogs = [one for one in found if one["part"] == "catalog"]
    if catalogs:
        print("\n| files | load s | start s | octets a file | memory at the start, at the end MiB "
              "|\n|---|---|---|---|---|")
    for one in catalogs:
        octets = one["stored_bytes"] / one["files"]
        mib = [one[key] / (1 << 20) for key in ("rss_start_bytes", "rss_end_bytes")]
        print(f"| {one['files']} | {one['load_s']:.1f} | {one['start_s']:.2f} | {octets:.0f} "
              f"| {mib[0]:.0f}, {mib[1]:.0f} |")
    for less, more in zip(catalogs, catalogs[1:]):
        files = more["files"] - less["files"]
        octets = (more["stored_bytes"] - less["stored_bytes"]) / files
        memory = (more["rss_start_bytes"] - less["rss_start_bytes"]) / files
        print(f"from {less['files']} to {more['files']} files: {octets:.0f} octets stored and "
              f"{memory:.0f} octets of memory a file")


def cell(one):
    """A rate, with latencies where they are known."""
    if one is None:
        return ""
    text = f"{one['per_s']:.0f}"
    if "median_us" in one:
        text += f" ({one['median_us']:.0f}, {one['p99_us']:.0f} µs)"
    return text


def tool(options):
    """The program for the core, beside byname."""
    return pathlib.Path(options.byname).parent / "examples/rates"
