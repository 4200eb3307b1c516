"""The units of deploy/ under a live systemd, process 1 of a machine in namespaces of its own."""

import os
import re

from harness import nodes, peers
from harness.case import Case
from harness.lab import wait_until

SYSTEMD = "/usr/lib/systemd/systemd"
NAMESPACES = ("--pid", "--mount", "--uts", "--ipc", "--net", "--cgroup")
FORWARD, SERVE = "byname-forward", "byname-serve@run7"
MOUNT, MOUNTED = "byname-mount@srv-mnt", "/srv/mnt"
# As systemd-escape has names with a dash.
CATALOG, DISK = "byname-catalog@lab-my\\x2dsite", "byname-disk@srv-disks-no\\x2d1"
SITE, DISK_DIRECTORY = "/lab/my-site", "/srv/disks/no-1"
SITE_USER, SITE_HOME = "byname-site", "/var/lib/byname-site"
CACHED, CACHE = "byname-cached", "/var/cache/byname-cached/cache"
USERS = ("4001", "4002")


class Units(Case):
    """What README.md and deploy/ promise whoever installs them."""

    needs_netns = True

    def setUp(self):
        super().setUp()
        if not os.access(SYSTEMD, os.X_OK):
            self._missing("there is no systemd")
        self.rights = os.stat("/").st_mode
        scratch = self.lab.path("machine/.keep").parent
        made = self.lab.run([peers.REPO / "scripts/package", nodes.byname_binary()],
                            {"CARGO_TARGET_DIR": str(self.lab.path("made"))}, timeout_s=120)
        self.assertEqual(made.code, 0, str(made))
        package = made.stdout.decode().split()[-1]
        self.machine = self.lab.start(
            "machine", ["unshare", *NAMESPACES, "--fork", "--kill-child",
                        peers.INTEROP / "systemd/machine", scratch, package])
        self.pid = None
        wait_until(self.has_booted, "systemd to be up", daemon=self.machine, timeout_s=60)

    def has_booted(self):
        """True once process 1 is systemd and has nothing left to start."""
        children = f"/proc/{self.machine.process.pid}/task/{self.machine.process.pid}/children"
        with open(children, encoding="ascii") as listed:
            found = listed.read().split()
        if not found:
            return False
        self.pid = found[0]
        with open(f"/proc/{self.pid}/comm", encoding="utf-8") as comm:
            if comm.read().strip() != "systemd":
                return False
        return self.run_there("systemctl", "is-system-running").stdout.strip() == b"running"

    def tearDown(self):
        # systemd takes no signal from outside for an order to end.
        if hasattr(self, "machine"):
            self.machine.process.kill()
        super().tearDown()
        # What is installed there is not installed here.
        if hasattr(self, "rights"):
            self.assertEqual(os.stat("/").st_mode, self.rights)

    def run_there(self, *argv):
        """Runs a command on the machine."""
        return self.lab.run(["nsenter", f"--target={self.pid}", "--all", *argv])

    def there(self, *argv):
        """Runs a command that has to succeed; what it printed."""
        done = self.run_there(*argv)
        journal = self.run_there("journalctl", "--no-pager", "-o", "cat").stdout.decode()
        self.assertEqual(done.code, 0, f"{argv}: {done}\n{journal}")
        return done.stdout.decode()

    def state(self, unit, name):
        """A property of a unit."""
        return self.there("systemctl", "show", unit, "-P", name).strip()

    def journal(self, unit, words=""):
        """Lines of a unit's journal with these words."""
        self.run_there("journalctl", "--sync")
        lines = self.run_there("journalctl", "-u", unit, "-o", "cat", "--no-pager").stdout.decode()
        return [line for line in lines.splitlines() if words in line]

    def wait_for_journal(self, unit, words):
        """Waits until a unit has said so."""
        wait_until(lambda: self.journal(unit, words), f"{unit} to say {words!r}")

    def test_services_start_reload_bear_a_kill_and_stop(self):
        """An hour of an administrator."""
        self.there("systemctl", "start", FORWARD, SERVE)
        for unit in (FORWARD, SERVE):
            self.assertEqual(self.state(unit, "ActiveState"), "active")
            self.assertEqual(self.state(unit, "User"), "ndn")
        self.compare()
        for page in ("byname.1.gz", "byname-get.1.gz"):
            self.there("test", "-s", f"/usr/share/man/man1/{page}")
        for completions in ("bash-completion/completions/byname",
                            "zsh/vendor-completions/_byname",
                            "fish/vendor_completions.d/byname.fish"):
            self.there("grep", "-q", "mirror", f"/usr/share/{completions}")

        # logrotate.
        log = "/var/log/byname/run7.jsonl"
        self.wait_for_file(log, '"name":"/lab/run7/events"')
        self.there("mv", log, log + ".1")
        self.there("systemctl", "reload", SERVE)
        self.there("cp", "/srv/run7/events", "/srv/run7/later")
        self.compare()
        self.wait_for_file(log, '"name":"/lab/run7/later"')

        # A mistake changes nothing.
        config = "/etc/byname/byname-forward.toml"
        self.there("sed", "-i", "s/^pit_entries/pit_entires/", config)
        self.there("systemctl", "reload", FORWARD)
        self.wait_for_journal(FORWARD, "configuration not taken over")
        self.assertEqual(self.state(FORWARD, "ActiveState"), "active")
        self.there("sed", "-i", "s/^pit_entires/pit_entries/", config)
        self.there("systemctl", "reload", FORWARD)

        # Whoever dies is started again, and what is published is there without a hand.
        for unit in (SERVE, FORWARD):
            before = self.state(unit, "MainPID")
            self.there("systemctl", "kill", "-s", "KILL", unit)
            wait_until(lambda u=unit, b=before: self.state(u, "MainPID") not in (b, "0")
                       and self.state(u, "ActiveState") == "active", f"{unit} to be back")
            self.compare()

        self.there("systemctl", "stop", SERVE, FORWARD)
        for unit in (FORWARD, SERVE):
            self.assertEqual(self.state(unit, "Result"), "success")
            self.assertEqual(self.state(unit, "ExecMainStatus"), "0")

    def test_a_server_that_is_started_first_is_a_service_that_waits(self):
        """A forwarder that comes later than systemd's patience is no failure."""
        self.there("systemctl", "start", "--no-block", SERVE)
        self.wait_for_journal(SERVE, "waiting")
        self.assertEqual(self.state(SERVE, "NRestarts"), "0")
        self.there("systemctl", "start", FORWARD)
        wait_until(lambda: self.state(SERVE, "ActiveState") == "active", "the server to be ready")
        self.compare()

    def test_a_mounted_tree_bears_a_kill_and_is_gone_when_it_is_stopped(self):
        """The unit of a mount, and what mount(8) makes of the same link."""
        self.there("systemctl", "start", FORWARD, SERVE)
        self.there("sh", "-ec", 'mkdir -p /etc/byname/mounts && echo "SOURCE=$1" >"$2"', "sh",
                   self.link(), "/etc/byname/mounts/srv-mnt.env")
        self.there("systemctl", "start", MOUNT)
        self.there("cmp", "/srv/run7/events", f"{MOUNTED}/events")
        before = self.state(MOUNT, "MainPID")
        self.there("systemctl", "kill", "-s", "KILL", MOUNT)
        wait_until(lambda: self.state(MOUNT, "MainPID") not in (before, "0")
                   and self.state(MOUNT, "ActiveState") == "active", "the mount to be back")
        self.there("cmp", "/srv/run7/events", f"{MOUNTED}/events")
        self.there("systemctl", "stop", MOUNT)
        self.assertEqual(self.state(MOUNT, "Result"), "success")
        self.assertNotEqual(self.run_there("mountpoint", "-q", MOUNTED).code, 0)
        for kind in ("byname", "fuse.byname"):
            self.there("mount", "-t", kind, "-o", "ro,freshness=2", self.link(), MOUNTED)
            self.there("cmp", "/srv/run7/events", f"{MOUNTED}/events")
            self.there("umount", MOUNTED)

    def test_a_site_bears_kills_of_its_head_and_of_its_disk(self):
        """A head and a disk as docs/site.md has them installed."""
        self.there("install", "-d", "-m", "700", "-o", SITE_USER, "-g", SITE_USER, SITE_HOME,
                   DISK_DIRECTORY)
        self.there("systemctl", "start", FORWARD)
        self.as_site("site", "init", SITE)
        self.there("systemctl", "start", CATALOG)
        self.as_site("site", "disk", "add", DISK_DIRECTORY)
        self.there("sh", "-ec", 'mkdir -p "$1" && printf "[Service]\\nEnvironment=%s\\n" "$2"'
                   ' >"$1/options.conf" && systemctl daemon-reload', "sh",
                   f"/etc/systemd/system/{DISK}.service.d",
                   '"OPTIONS=--metrics 127.0.0.1:9701"')
        self.there("systemctl", "start", DISK)
        for unit in (CATALOG, DISK):
            self.assertEqual(self.state(unit, "User"), SITE_USER)
        self.there("grep", "-qz", "127.0.0.1:9701", f"/proc/{self.state(DISK, 'MainPID')}/cmdline")
        self.there("install", "-m", "644", "/srv/run7/events", "/run/events")
        self.as_site("put", "/run/events", f"{SITE}/events")
        for unit in (CATALOG, DISK):
            before = self.state(unit, "MainPID")
            self.there("systemctl", "kill", "-s", "KILL", unit)
            wait_until(lambda u=unit, b=before: self.state(u, "MainPID") not in (b, "0")
                       and self.state(u, "ActiveState") == "active", f"{unit} to be back")
            self.there("sh", "-ec", f'({self.AS_SITE} cat {SITE}/events) | cmp - /run/events')
        self.as_site("put", "/run/events", f"{SITE}/later")
        self.there("systemctl", "stop", DISK, CATALOG)
        for unit in (CATALOG, DISK):
            self.assertEqual(self.state(unit, "Result"), "success")
            self.assertEqual(self.journal(unit, "Operation not permitted"), [])

    AS_SITE = (f"cd / && exec setpriv --reuid={SITE_USER} --regid={SITE_USER} --init-groups"
               f" env BYNAME_HOME={SITE_HOME} byname")

    def as_site(self, *argv):
        """Runs byname as who owns heads and disks."""
        return self.there("sh", "-ec", f'{self.AS_SITE} "$@"', "sh", *argv)

    def test_one_cache_for_all_users_bears_a_kill(self):
        """The unit of the machine's cache, as docs/cache.md has it installed."""
        self.there("systemctl", "start", FORWARD, SERVE, CACHED)
        self.assertEqual(self.state(CACHED, "User"), CACHED)
        self.there("sh", "-ec", "printf '[cache]\nservice = \"/run/byname-cached/socket\"\n'"
                   " >>/etc/byname/byname.toml")
        wait_until(lambda: self.read_as(USERS[0]) and "whole" in self.held(), "it to be kept")
        self.assertEqual(self.held().count("whole"), 1)
        self.assertTrue(self.read_as(USERS[1]))
        before = self.state(CACHED, "MainPID")
        self.there("systemctl", "kill", "-s", "KILL", CACHED)
        self.assertTrue(self.read_as(USERS[0]))
        wait_until(lambda: self.state(CACHED, "MainPID") not in (before, "0")
                   and self.state(CACHED, "ActiveState") == "active", "the cache to be back")
        self.assertIn("whole", self.held())
        self.assertTrue(self.read_as(USERS[1]))
        self.assertEqual(self.journal(CACHED, "Operation not permitted"), [])
        self.there("systemctl", "stop", CACHED)
        self.assertEqual(self.state(CACHED, "Result"), "success")

    def read_as(self, user):
        """True if an ordinary user reads the file through the machine's cache."""
        link = self.link().replace("/lab/run7", "/lab/run7/events", 1)
        line = ('home=/run/user-$1 && mkdir -p "$home" && chown "$1" "$home" && exec setpriv'
                ' --reuid="$1" --regid="$1" --groups=ndn env BYNAME_HOME="$home" BYNAME_CACHE=1'
                ' byname cat "$2" | cmp - /srv/run7/events')
        self.there("sh", "-ec", line, "sh", user, link)
        return self.run_there("test", "-e", f"/run/user-{user}/cache").code != 0

    def held(self):
        """What the machine's cache has, as its own user sees it."""
        return self.there("setpriv", "--reuid=byname-cached", "--regid=byname-cached",
                          "--clear-groups", "env", f"BYNAME_CACHE_DIR={CACHE}",
                          "BYNAME_HOME=/run/none", "byname", "cache", "ls")

    def link(self):
        """The link that the server has printed."""
        self.wait_for_journal(SERVE, "byname:/")
        return re.search(r"byname:/\S+", self.journal(SERVE, "byname:/")[-1]).group()

    def compare(self):
        """Reads what is published with the link of the journal, and compares it."""
        link, copy = self.link(), "/run/copy"
        self.there("env", "BYNAME_HOME=/run/reader", "byname", "get", "-r", link, "-o", copy,
                   "--checksum")
        self.there("cmp", "/srv/run7/events", f"{copy}/events")
        self.there("rm", "-r", copy)

    def wait_for_file(self, path, words):
        """Waits until a file of the machine has these words."""
        wait_until(lambda: self.run_there("grep", "-qF", words, path).code == 0,
                   f"{words} in {path}")
