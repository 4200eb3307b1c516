"""Wall time, CPU time and memory of one client run and of the servers that worked for it."""

import dataclasses
import os
import subprocess
import tempfile
import threading
import time

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
RUN_TIMEOUT_S = 600
# A run of which the host of a virtual machine took more than this part of the processors' time is
# repeated, so often at most; the one that it took the least of counts, whatever it cost.
STOLEN_SHARE_MAX = 0.02
TRIES_MAX = 4


@dataclasses.dataclass
class Sample:
    """One run."""

    code: int
    wall_s: float
    client_cpu_s: float
    servers_cpu_s: dict[str, float]
    client_rss_bytes: int
    servers_rss_bytes: dict[str, int]
    stderr: str
    # On all links, both ways, link headers included; None where no link counts.
    wire_bytes: int | None = None
    # While it ran, all processors; a virtual machine pays for it in processor time, too.
    stolen_s: float = 0.0

    @property
    def stolen_share(self):
        """Of the time of all processors."""
        return self.stolen_s / self.wall_s / os.cpu_count()

    @property
    def is_disturbed(self):
        """Whether it tells more about the host's other guests than about the program."""
        return self.stolen_share > STOLEN_SHARE_MAX

    @property
    def cpu_s(self):
        """Of all processes together."""
        return self.client_cpu_s + sum(self.servers_cpu_s.values())


def stolen_s():
    """Time that the host of a virtual machine gave to others while we wanted it, all processors."""
    with open("/proc/stat", encoding="ascii") as stat:
        return int(stat.readline().split()[8]) / TICKS_PER_S


def process_cpu_s(pid):
    """User and system time of a process, its threads and the children it has waited for."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11:15]) / TICKS_PER_S


def process_cpu_ns(pid):
    """What the scheduler has given to the threads that live now: exact, where `stat` has ticks."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as schedstat:
                total += int(schedstat.read().split()[0])
        except FileNotFoundError:  # it has ended meanwhile
            pass
    return total


def process_waits(pid):
    """How often the threads that live now went to sleep."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/status", encoding="ascii",
                      errors="replace") as status:
                total += sum(int(line.split()[1]) for line in status
                             if line.startswith("voluntary_ctxt_switches:"))
        except FileNotFoundError:  # it has ended meanwhile
            pass
    return total


def process_rss_bytes(pid):
    """Largest resident size so far."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def run(argv, env, servers, stdout=None):
    """Runs a client to its end while `servers` ({label: process id}) work for it."""
    before = {label: process_cpu_s(pid) for label, pid in servers.items()}
    with open(stdout or os.devnull, "wb") as out, tempfile.TemporaryFile() as err:
        started = time.monotonic()
        process = subprocess.Popen([str(a) for a in argv], env=env, stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=err)
        watchdog = threading.Timer(RUN_TIMEOUT_S, process.kill)
        watchdog.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.monotonic() - started
        watchdog.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        stderr = err.read().decode(errors="replace")
    used = {label: process_cpu_s(pid) - before[label] for label, pid in servers.items()}
    return Sample(
        code=process.returncode,
        wall_s=wall_s,
        client_cpu_s=usage.ru_utime + usage.ru_stime,
        servers_cpu_s=used,
        client_rss_bytes=usage.ru_maxrss * 1024,
        servers_rss_bytes={label: process_rss_bytes(pid) for label, pid in servers.items()},
        stderr=stderr,
    )
