"""From samples to tables: per GiB, min, median, max, and ratios of medians to the reference."""

import datetime
import json
import os
import platform
import statistics

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


def summarise(samples, size_bytes, publish_cpu_s, first):
    """Numbers of one scenario."""
    per_gib = GIB / size_bytes
    return {
        "rounds": len(samples),
        "wall_s_per_gib": spread([s.wall_s * per_gib for s in samples]),
        "cpu_s_per_gib": spread([s.cpu_s * per_gib for s in samples]),
        "client_cpu_s_per_gib": spread([s.client_cpu_s * per_gib for s in samples]),
        "servers_cpu_s_per_gib": {
            label: spread([s.servers_cpu_s[label] * per_gib for s in samples])
            for label in first.servers_cpu_s
        },
        "publish_cpu_s_per_gib": publish_cpu_s * per_gib,
        "first_fetch_cpu_s_per_gib": first.cpu_s * per_gib,
        "client_rss_bytes_max": max(s.client_rss_bytes for s in samples),
        "server_rss_bytes_max": max(s.server_rss_bytes for s in samples),
    }


def add_ratios(summaries, reference):
    """Ratios of medians to the reference, where there is one."""
    base = summaries.get(reference)
    for summary in summaries.values():
        for key in ("wall_s_per_gib", "cpu_s_per_gib"):
            ratio = summary[key]["median"] / base[key]["median"] if base else None
            summary[key.replace("_s_per_gib", "_ratio")] = ratio


def markdown(run):
    """The report of one run as a page."""
    host = run["machine"]
    lines = [
        f"# Local transfer of {run['size_bytes'] / GIB:g} GiB, {host['date']}",
        "",
        f"{host['processor']}, {host['cores']} cores, {host['memory_gib']} GiB, {host['kernel']}. "
        + "; ".join(dict.fromkeys(run["versions"].values())) + ".",
        f"Command: `{run['command']}`. {run['rounds']} rounds, the programs in turn in each; one "
        "warm-up each; every result compared byte by byte. "
        f"Load before the run: {host['load_before']:.2f}.",
        "",
        "CPU-seconds are of all processes, servers and forwarders included. *Publish* is what the "
        "servers spent before the first fetch, *first* is the first fetch (byname hashes the "
        "file in it).",
        "",
        "| program | wall s/GiB: median (min–max) | CPU s/GiB: median (min–max) | client CPU | "
        f"server CPU | publish | first | wall ÷ {run['reference']} | CPU ÷ {run['reference']} | "
        "client MiB | servers MiB |",
        "|" + "---|" * 11,
    ]
    lines += [row(title, summary) for title, summary in run["summaries"].items()]
    lines += ["", *(f"Not measured: {title}: {why}." for title, why in run["missing"].items())]
    lines += [f"Control: {run['control']}."]
    return "\n".join(lines) + "\n"


def row(title, summary):
    """One line of the table."""
    def triple(key):
        s = summary[key]
        return f"{s['median']:.2f} ({s['min']:.2f}–{s['max']:.2f})"

    def ratio(key):
        return "" if summary[key] is None else f"{summary[key]:.2f}"

    cells = (
        title,
        triple("wall_s_per_gib"),
        triple("cpu_s_per_gib"),
        f"{summary['client_cpu_s_per_gib']['median']:.2f}",
        "<br>".join(f"{label} {used['median']:.2f}"
                    for label, used in summary["servers_cpu_s_per_gib"].items()),
        f"{summary['publish_cpu_s_per_gib']:.2f}",
        f"{summary['first_fetch_cpu_s_per_gib']:.2f}",
        ratio("wall_ratio"),
        ratio("cpu_ratio"),
        f"{summary['client_rss_bytes_max'] / (1 << 20):.0f}",
        f"{summary['server_rss_bytes_max'] / (1 << 20):.0f}",
    )
    return "| " + " | ".join(cells) + " |"


def as_json(run):
    """The same for programs: one object on one line."""
    return json.dumps({"schema": 1, **run})
