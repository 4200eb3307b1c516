"""From samples to tables: per unit of work, median, min, max, and ratios of medians."""

import datetime
import json
import os
import platform
import statistics

import measure

GIB = 1 << 30


def machine():
    """What the numbers were measured on."""
    model = "unknown processor"
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as cpuinfo:
        for line in cpuinfo:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": model,
        "cores": os.cpu_count(),
        "memory_gib": round(memory / GIB, 1),
        "kernel": f"{platform.system()} {platform.release()}",
        "load_before": os.getloadavg()[0],
    }


def spread(values):
    """{min, median, max}"""
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def summarise(samples, units, publish_cpu_s, first):
    """Numbers of one contender, per unit of the work: GiB or file."""
    return {
        "rounds": len(samples),
        "wall_s_per_unit": spread([s.wall_s / units for s in samples]),
        "cpu_s_per_unit": spread([s.cpu_s / units for s in samples]),
        "client_cpu_s_per_unit": spread([s.client_cpu_s / units for s in samples]),
        "servers_cpu_s_per_unit": {
            label: spread([s.servers_cpu_s[label] / units for s in samples])
            for label in first.servers_cpu_s
        },
        "publish_cpu_s_per_unit": publish_cpu_s / units,
        "first_fetch_cpu_s_per_unit": first.cpu_s / units,
        "client_rss_bytes_max": max(s.client_rss_bytes for s in samples),
        "servers_rss_bytes_max": {
            label: max(s.servers_rss_bytes[label] for s in samples)
            for label in first.servers_rss_bytes
        },
        "wire_bytes_per_unit": None if first.wire_bytes is None else
        statistics.median(s.wire_bytes / units for s in samples),
    }


def add_ratios(summaries, reference):
    """Ratios of medians to the reference, where there is one."""
    base = summaries.get(reference)
    for summary in summaries.values():
        for key in ("wall_s_per_unit", "cpu_s_per_unit"):
            ratio = summary[key]["median"] / base[key]["median"] if base else None
            summary[key.replace("_s_per_unit", "_ratio")] = ratio


def markdown(run):
    """The report of one run as a page."""
    host = run["machine"]
    versions = dict.fromkeys(v for suite in run["suites"] for v in suite["versions"].values())
    lines = [
        f"# Moving files, {host['date']}",
        "",
        f"{host['processor']}, {host['cores']} cores, {host['memory_gib']} GiB, {host['kernel']}. "
        + "; ".join(versions) + ".",
        f"Command: `{run['command']}`. {run['rounds']} rounds, the programs in turn in each; one "
        "warm-up each; every result compared byte by byte. "
        f"Load before the run: {host['load_before']:.2f}. {stolen(run['suites'])}",
        "",
        "CPU is that of all processes, servers and forwarders included. *Publish* is what the "
        "servers spent before the first fetch, *first* is the first fetch (byname hashes the "
        "file in it). Numbers are median (min–max). Memory is the largest resident size (a "
        "client's is at least that of the program that starts it, 23 MiB). *On the wire* is what "
        "all links carried per unit, both ways, headers included.",
        "",
    ]
    targets = [row for suite in run["suites"]
               for row in ((suite["title"], *target) for target in suite["targets"])]
    targets += [("A moment", *row) for row in run["probes"]]
    if targets:
        lines += ["| suite | target | measured | |", "|---|---|---|---|"]
        lines += ["| " + " | ".join(row) + " |" for row in targets] + [""]
    for suite in run["suites"]:
        lines += table(suite)
    lines += [f"Not run: {key}: {why}." for key, why in run["left_out"].items()]
    lines += [f"Control: {run['control']}."]
    return "\n".join(lines) + "\n"


def stolen(suites_run):
    """What the host took of the timed runs; what they cost is its doing, too."""
    samples = [s for suite in suites_run for own in suite["samples"].values() for s in own]
    wall_s = sum(s["wall_s"] for s in samples)
    if not wall_s:
        return ""
    share = sum(s["stolen_s"] for s in samples) / wall_s / os.cpu_count()
    worst = max(s["stolen_s"] / s["wall_s"] for s in samples) / os.cpu_count()
    return (f"The host gave {100 * share:.1f} % of the processors' time to others during the runs "
            f"that count, {100 * worst:.0f} % at worst; a run with more than "
            f"{100 * measure.STOLEN_SHARE_MAX:.0f} % was repeated up to {measure.TRIES_MAX - 1} "
            "times and the one with the least counts.")


def table(suite):
    """One suite."""
    # Small files take microseconds each.
    scale, second = (1e6, "µs") if suite["unit"] == "file" else (1, "s")
    unit, reference = suite["unit"], suite["reference"]
    lines = [
        f"## {suite['title']}",
        "",
        f"{suite['units']:g} {unit}{'s' if unit == 'file' else ''}. {suite['note']}".rstrip(),
        "",
        f"| program | wall {second}/{unit} | CPU {second}/{unit} | client CPU | server CPU "
        f"| publish | first | wall ÷ {reference} | CPU ÷ {reference} "
        "| client MiB | servers MiB | on the wire |",
        "|" + "---|" * 12,
    ]
    lines += [row(title, summary, scale) for title, summary in suite["summaries"].items()]
    return [*lines, "", *(f"Not measured: {title}: {why}."
                          for title, why in suite["missing"].items()), ""]


def row(title, summary, scale):
    """One line of the table."""
    digits = 2 if scale == 1 else 0

    def number(value):
        return f"{value * scale:.{digits}f}"

    def triple(key):
        s = summary[key]
        return f"{number(s['median'])} ({number(s['min'])}–{number(s['max'])})"

    def ratio(key):
        return "" if summary[key] is None else f"{summary[key]:.2f}"

    wire = summary["wire_bytes_per_unit"]
    cells = (
        title,
        triple("wall_s_per_unit"),
        triple("cpu_s_per_unit"),
        number(summary["client_cpu_s_per_unit"]["median"]),
        "<br>".join(f"{label} {number(used['median'])}"
                    for label, used in summary["servers_cpu_s_per_unit"].items()),
        number(summary["publish_cpu_s_per_unit"]),
        number(summary["first_fetch_cpu_s_per_unit"]),
        ratio("wall_ratio"),
        ratio("cpu_ratio"),
        f"{summary['client_rss_bytes_max'] / (1 << 20):.0f}",
        "<br>".join(f"{label} {rss / (1 << 20):.0f}"
                    for label, rss in summary["servers_rss_bytes_max"].items()),
        "" if wire is None else f"{wire / GIB:.3f} GiB",
    )
    return "| " + " | ".join(cells) + " |"


def as_json(run):
    """The same for programs: one object on one line."""
    return json.dumps({"schema": 1, **run})
