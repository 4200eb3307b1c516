"""The page of bench/forwarder: targets first, then every cell."""

import cells
from report import spread

GIB = 1 << 30
STORE_BYTES = 64 << 20
PERCENTILES = ("p50", "p90", "p99", "p99_9")


def summarise(cell, title, samples):
    """Numbers of one contender in one cell."""
    def over(key):
        return spread([sample[key] for sample in samples])

    return {
        "group": cell.group,
        "cell": cell.key,
        "link": cell.link,
        "payload": cell.payload,
        "store": cell.store,
        "routes": cell.routes,
        "window": cell.window,
        "is_pinned": cell.is_pinned,
        "is_split": cell.is_split,
        "contender": title,
        "middle_us": over("middle_us"),
        "data_per_s": over("data_per_s"),
        "consumer_us": over("cpu_us_per_exchange"),
        "producer_us": over("producer_us"),
        "latency_us": {name: spread([sample["latency_us"][name] for sample in samples])
                       for name in PERCENTILES},
        "waits": over("waits"),
        "timeouts": sum(sample["timeouts"] for sample in samples),
        "nacks": sum(sum(sample["nacks"].values()) for sample in samples),
        "rss_bytes": max(sample["rss_bytes"] for sample in samples),
    }


class Results:
    """Looks cells up."""

    def __init__(self, run):
        self.rows = run["cells"]
        self.memory_bytes = run["memory_bytes"]

    def find(self, contender, **wanted):
        """The row of a contender whose fields are as wanted, or None."""
        for row in self.rows:
            if row["contender"] == contender and all(row[k] == v for k, v in wanted.items()):
                return row
        return None

    def group(self, name):
        """Rows of a group in order, by cell."""
        found = {}
        for row in self.rows:
            if row["group"] == name:
                found.setdefault(row["cell"], []).append(row)
        return found


def verdict(holds):
    """As a word."""
    return "met" if holds else "**missed**"


def targets(results):
    """Rows of (target, what was measured, whether it holds)."""
    yield from t1(results)
    yield from t2(results)
    yield from t8(results)
    if results.memory_bytes:
        above = (results.memory_bytes - STORE_BYTES) / (1 << 20)
        yield ("T10 memory ≤ store + 64 MiB (store full, 10 k routes, 16 faces)",
               f"{results.memory_bytes / (1 << 20):.0f} MiB, {above:.0f} MiB above the store",
               verdict(above <= 64))


def t1(results):
    """Cost against NDNd."""
    wanted = {"group": "cost", "link": "unix", "payload": 8192, "store": "on"}
    ours, theirs = (results.find(who, **wanted) for who in (cells.BYNAME, cells.NDND))
    if ours and theirs:
        own, other = ours["middle_us"]["median"], theirs["middle_us"]["median"]
        yield ("T1 Unix, 8 KiB: ≤ 1/12 of NDNd's CPU per exchange",
               f"{own:.2f} µs against {other:.1f} µs: 1/{other / own:.1f}",
               verdict(own * 12 <= other))


def t2(results):
    """Cost over shared memory."""
    limits = ((8192, "off", 1.0), (8192, "on", 1.8), (1000, "off", 0.7), (100, "off", 0.7))
    for payload, store, limit_us in limits:
        row = results.find(cells.BYNAME, group="cost", link="memif", payload=payload, store=store,
                           is_split=False)
        if row:
            own = row["middle_us"]["median"]
            yield (f"T2 memif, {payload} B, store {store}: ≤ {limit_us} µs CPU per exchange",
                   f"{own:.2f} µs", verdict(own <= limit_us))
    row = results.find(cells.BYNAME, group="cost", is_split=True)
    if row:
        rate = row["data_per_s"]["median"]
        yield ("T2 memif, 100 B: one shard with a core of its own ≥ 1 M exchanges/s",
               f"{rate / 1e6:.2f} M/s", verdict(rate >= 1e6))


def t8(results):
    """Latency of one exchange at a time."""
    for is_pinned, how in ((True, "pinned to one core"), (False, "free")):
        rows = {who: results.find(who, group="latency", link="unix", is_pinned=is_pinned)
                for who in (cells.BYNAME, cells.RELAY, cells.NDND)}
        for other, limit in ((cells.RELAY, 1.3), (cells.NDND, 0.6)):
            if not rows[cells.BYNAME] or not rows[other]:
                continue
            for name in ("p50", "p99"):
                own, theirs = (rows[who]["latency_us"][name]["median"]
                               for who in (cells.BYNAME, other))
                yield (f"T8 Unix, {how}, {name}: ≤ {limit} × {other}",
                       f"{own:.1f} µs against {theirs:.1f} µs: {own / theirs:.2f}",
                       verdict(own <= limit * theirs))


def markdown(run):
    """The report of one run as a page."""
    host, results = run["machine"], Results(run)
    versions = "; ".join(v for v in dict.fromkeys(run["versions"].values()) if v)
    lines = [
        f"# Forwarders side by side, {host['date']}",
        "",
        f"{host['processor']}, {host['cores']} cores, {host['memory_gib']} GiB, {host['kernel']}. "
        f"{versions}. Commit {run['commit']}.",
        f"Command: `{run['command']}`. {run['rounds']} rounds of {run['seconds']:g} s, the "
        "forwarders in turn in each; one warm-up each; every answer compared byte by byte. "
        f"Load before the run: {host['load_before']:.2f}.",
        "",
        "CPU is that of the forwarder's process per exchange (one Interest in, out, its Data in, "
        "out), from the scheduler's own account; consumer and producer are the same for all. "
        "Numbers are median (min–max).",
        "",
    ]
    rows = list(targets(results))
    if rows:
        lines += ["| target | measured | |", "|---|---|---|"]
        lines += [f"| {name} | {measured} | {word} |" for name, measured, word in rows] + [""]
    lines += costs(results) + fib(results) + latencies(results)
    lines += [f"Not measured: {what}: {why}." for what, why in run["missing"].items()]
    lines += [f"Control: {run['control']}."]
    return "\n".join(lines) + "\n"


def triple(values, digits=2):
    """median (min–max)"""
    numbers = (values[key] for key in ("median", "min", "max"))
    return "{:.{d}f} ({:.{d}f}–{:.{d}f})".format(*numbers, d=digits)


def thousands(values):
    """The same in thousands."""
    return triple({key: value / 1e3 for key, value in values.items()}, 0)


def per_sleep(row):
    """Exchanges for each time that the forwarder found nothing to do."""
    waits = row["waits"]["median"]
    return f"{1 / waits:.0f}" if waits > 0.001 else "> 1000"


def costs(results):
    """CPU per exchange and exchanges per second."""
    found = results.group("cost")
    if not found:
        return []
    lines = [
        "## Cost of an exchange",
        "",
        "| link, payload, store | window | forwarder | CPU µs per exchange | ÷ byname | "
        "1000 exchanges/s | per sleep | consumer µs | producer µs | lost |",
        "|" + "---|" * 10,
    ]
    for cell, rows in found.items():
        own = next((r for r in rows if r["contender"] == cells.BYNAME), None)
        for row in rows:
            ratio = row["middle_us"]["median"] / own["middle_us"]["median"] if own else 0
            lines.append("| " + " | ".join((
                cell, str(row["window"]), row["contender"], triple(row["middle_us"]),
                f"{ratio:.1f}", thousands(row["data_per_s"]), per_sleep(row),
                f"{row['consumer_us']['median']:.2f}", f"{row['producer_us']['median']:.2f}",
                str(row["timeouts"] + row["nacks"]),
            )) + " |")
    return [*lines, "", "*on*: every name is asked for once, the store takes it in; *off*: no "
            "store; *hit*: the store has everything. *Per sleep*: exchanges for each time that the "
            "forwarder found nothing to do and slept. *Lost* counts time-outs and Nacks; UDP may "
            "lose, and both forwarders send datagrams of up to 8800 octets here. Three processes "
            "share the cores, so exchanges per second say less than CPU.", ""]


def fib(results):
    """Routes."""
    found = results.group("fib")
    if not found:
        return []
    lines = [
        "## Routes",
        "",
        "Names are spread evenly over the routes; 100 B over Unix, store on.",
        "",
        "| routes | forwarder | CPU µs per exchange | 1000 exchanges/s | largest size MiB | "
        "routes registered in s |",
        "|" + "---|" * 6,
    ]
    for rows in found.values():
        for row in rows:
            lines.append(
                f"| {row['routes']} | {row['contender']} | {triple(row['middle_us'])} | "
                f"{thousands(row['data_per_s'])} | {row['rss_bytes'] / (1 << 20):.0f} | "
                f"{row['registering_s']:.2f} |")
    return [*lines, "", *bytes_per_route(results)]


def bytes_per_route(results):
    """From the sizes with few and with many routes."""
    few = results.find(cells.BYNAME, group="fib", routes=10)
    many = results.find(cells.BYNAME, group="fib", routes=1_000_000)
    if not few or not many:
        return []
    each = (many["rss_bytes"] - few["rss_bytes"]) / many["routes"]
    return [f"A route takes {each:.0f} bytes in byname's forwarder, RIB and FIB together.", ""]


def latencies(results):
    """One exchange at a time."""
    found = results.group("latency")
    if not found:
        return []
    lines = [
        "## Latency of one exchange at a time",
        "",
        "100 B, idle otherwise, µs. *Pinned*: all three processes on one core.",
        "",
        "| | link | between | p50 | p90 | p99 | p99.9 | forwarder's CPU |",
        "|" + "---|" * 8,
    ]
    for rows in found.values():
        for row in rows:
            times = " | ".join(triple(row["latency_us"][name], 1) for name in PERCENTILES)
            how = "pinned" if row["is_pinned"] else "free"
            cpu = f"{row['middle_us']['median']:.1f}"
            lines.append(f"| {how} | {row['link']} | {row['contender']} | {times} | {cpu} |")
    return [*lines, ""]
