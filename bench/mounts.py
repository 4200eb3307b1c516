"""What `bench/mount` compares: the local file system, mounts of byname, and mounts of others, each
with a server on another machine (a network namespace)."""

import os
import pathlib
import shutil
import socket
import subprocess

from harness import xrootd
from harness.lab import free_port, wait_until

HERE = pathlib.Path(__file__).resolve().parent.parent
BIN = os.environ.get("BYNAME_BIN", str(HERE / "target/release/byname"))
NAME = "/bench/mount"
COMMAND_S = 120
READY_S = 15


def lacks(programs):
    """The first of these programs that is not installed, or None."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return next((it for it in programs if not shutil.which(it, path=path)), None)


def is_mounted(path):
    """True if something is mounted there; does not ask the mount, which may hang."""
    lines = pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return any(line.split()[4] == str(path) for line in lines)


class Local:
    """The source itself."""

    name = "local file system"

    def __init__(self, ground):
        self.ground = ground
        self.path = ground.source

    @staticmethod
    def missing():
        """What has to be installed for it, or None."""
        return None

    def start(self):
        """Starts the server."""

    def forget(self):
        """Leaves nothing of earlier rounds on the disk."""

    def mount(self):
        """Mounts; returns the directory."""
        return self.path

    def fill(self):
        """Has all of the large file on the disk, if it keeps any."""

    def settle(self, path):
        """Waits until the large file is read as it will be from now on."""

    def own_file(self):
        """The file in which it keeps the large file on the disk, or None."""

    def unmount(self):
        """Unmounts, and waits until that is done."""


class Mounted(Local):
    """A mount of a server at the other end of a link."""

    programs = ()

    def __init__(self, ground):
        super().__init__(ground)
        self.slug = self.name.replace(" ", "-").replace(",", "")
        self.path = ground.lab.path(f"mnt/{self.slug}/.keep").parent
        self.path.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.client = None

    @classmethod
    def missing(cls):
        return lacks(cls.programs)

    @property
    def address(self):
        """The server's machine, as the reader's sees it."""
        return self.ground.topology.address("origin", seen_from="site")

    def serve(self, argv, needle=None):
        """Starts the server; ready when it prints `needle`, or is connected to."""
        server = self.ground.topology["origin"].start(self.slug, argv)
        if needle:
            server.wait_for_log(needle)
        else:
            probe = f"import socket; socket.create_connection(('{self.address}', {self.port}))"
            site = self.ground.topology["site"]
            wait_until(lambda: site.run(["python3", "-c", probe]).code == 0,
                       f"{self.name} to listen", daemon=server)
        return server

    def run(self, argv, env=None):
        """Runs a command on the reader's machine."""
        done = self.ground.topology["site"].run(argv, env, timeout_s=COMMAND_S)
        if done.code != 0:
            raise SystemExit(f"bench/mount: {self.name}: {argv}: {done}")
        return done

    def mount_in_foreground(self, argv, env=None):
        """Starts a process that stays, and waits for its mount."""
        self.client = self.ground.topology["site"].start(f"{self.slug}-client", argv, env)
        wait_until(lambda: is_mounted(self.path), f"the mount of {self.name}", daemon=self.client)
        # One that hangs is let go; the umount of a lab's end wakes whoever waits for it.
        self.run(["timeout", "--signal=KILL", str(READY_S), "stat", self.path])
        return self.path

    def unmount(self):
        if not is_mounted(self.path):
            return
        subprocess.run(["umount", str(self.path)], check=True)
        if self.client:
            self.client.process.wait(COMMAND_S)
            self.client = None


class Byname(Mounted):
    """`byname mount` with its site cache: large files that are whole there are read by the kernel.
    All mounts of byname have one publisher, and each a cache of its own."""

    name = "byname"
    flags = ()

    @classmethod
    def missing(cls):
        return None if os.access(BIN, os.X_OK) else f"{BIN} (make build)"

    def start(self):
        self.link = self.ground.byname_link(self)
        self.cache = self.ground.lab.path(f"cache-{self.slug}")
        self.env = {"BYNAME_HOME": str(self.ground.lab.path(f"home-{self.slug}")),
                    "BYNAME_CACHE_DIR": str(self.cache), "BYNAME_CACHE_FREE_MIB": "0"}

    def publish(self):
        """Starts the publisher, with all roots known; its link."""
        origin = self.ground.topology["origin"]
        env = {"BYNAME_HOME": str(self.ground.lab.path("home-origin"))}
        prepare = [BIN, "prepare", self.ground.source, "--name", NAME, "--hidden"]
        done = origin.run(prepare, env, timeout_s=COMMAND_S)
        if done.code != 0:
            raise SystemExit(f"bench/mount: {done}")
        server = origin.start("up", [BIN, "up", self.ground.source, "--name", NAME, "--hidden",
                                     "--listen", f"tcp://{self.address}:{self.port}"], env)
        server.wait_for_log("byname:/")
        text = server.log_text()
        return text[text.index("byname:/"):].split()[0]

    def forget(self):
        shutil.rmtree(self.cache, ignore_errors=True)

    def mount(self):
        self.run([BIN, "mount", self.link, self.path, *self.flags], self.env)
        return self.path

    def fill(self):
        self.run([BIN, "cache", "warm", self.link.replace(NAME, f"{NAME}/big", 1)], self.env)
        self.run([BIN, "cache", "verify", f"{NAME}/big"], self.env)

    def settle(self, path):
        def is_passed_through():
            with open(path, "rb"):
                return os.getxattr(path, "user.byname.passed_through") == b"yes"

        wait_until(is_passed_through, "the kernel to read the file by itself")

    def own_file(self):
        files = self.cache.glob("entries/*/*/data")
        return next((it for it in files if it.stat().st_size == self.ground.big_bytes), None)


class Verified(Byname):
    """The same, and every byte goes through the verifier."""

    def settle(self, path):
        pass

    name = "byname, no passthrough"
    flags = ("--no-passthrough",)


class Uncached(Byname):
    """The same without the site cache."""

    name = "byname, no cache"
    flags = ("--no-cache",)

    def fill(self):
        pass

    def settle(self, path):
        pass

    def own_file(self):
        return None


class Floor(Mounted):
    """A FUSE file system that answers with zeros: what FUSE itself takes."""

    name = "FUSE floor"
    program = HERE / "target/release/examples/fuse_floor"

    @classmethod
    def missing(cls):
        is_there = os.access(cls.program, os.X_OK)
        return None if is_there else f"{cls.program} (cargo build --release --examples)"

    def mount(self):
        return self.mount_in_foreground([self.program, self.path, self.ground.big_bytes >> 20])


class Rclone(Mounted):
    """`rclone mount` with its VFS cache, of `rclone serve webdav`."""

    name = "rclone"
    programs = ("rclone",)

    def start(self):
        self.cache = self.ground.lab.path("cache-rclone")
        self.serve(["rclone", "serve", "webdav", self.ground.source, "--read-only",
                    "--addr", f"{self.address}:{self.port}"])

    def forget(self):
        shutil.rmtree(self.cache, ignore_errors=True)

    def mount(self):
        remote = f":webdav,url='http://{self.address}:{self.port}':"
        return self.mount_in_foreground(
            ["rclone", "mount", remote, self.path, "--read-only", "--vfs-cache-mode", "full",
             "--cache-dir", self.cache])


class Sshfs(Mounted):
    """`sshfs` of an sshd with keys of its own."""

    name = "sshfs"
    programs = ("sshfs", "sshd", "ssh-keygen")

    def start(self):
        self.keys = self.ground.lab.path("ssh/.keep").parent
        self.keys.mkdir(exist_ok=True)
        for key in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.keys / key],
                           check=True)
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)
        authorized = self.keys / "user.pub"
        self.serve([shutil.which("sshd", path="/usr/sbin:/usr/bin"), "-D", "-e", "-f", "/dev/null",
                    "-p", self.port, "-h", self.keys / "host", "-o", "PidFile=none",
                    "-o", f"AuthorizedKeysFile={authorized}", "-o", "StrictModes=no",
                    "-o", "UsePAM=no", "-o", "Subsystem=sftp internal-sftp"])

    def mount(self):
        return self.mount_in_foreground(
            ["sshfs", "-f", "-p", str(self.port), f"{self.address}:{self.ground.source}",
             self.path, "-o", f"ro,IdentityFile={self.keys / 'user'},StrictHostKeyChecking=no,"
             "UserKnownHostsFile=/dev/null,LogLevel=ERROR"])


class Xrootdfs(Mounted):
    """`xrootdfs` of an `xrootd`."""

    name = "xrootdfs"
    programs = ("xrootdfs", "xrootd")

    def start(self):
        place = self.ground.lab.path("xrootd/.keep").parent
        place.mkdir(exist_ok=True)
        shutil.chown(place, "xrootd")
        config = place / "xrootd.cfg"
        config.write_text(f"all.export {self.ground.source} r/o\nxrd.port {self.port}\n"
                          f"all.adminpath {place}\nall.pidpath {place}\nxrd.network nodnr\n",
                          encoding="utf-8")
        # It tells its clients the address that it finds for its own name.
        hosts = place / "hosts"
        hosts.write_text(f"{self.address} {socket.gethostname()}\n", encoding="utf-8")
        script = 'mount --bind "$1" /etc/hosts && exec xrootd -R xrootd -c "$2" -l "$3"'
        self.serve(["unshare", "--mount", "sh", "-ec", script, "sh", hosts, config, place / "log"])

    def mount(self):
        remote = f"rdr=root://{self.address}:{self.port}/{self.ground.source}"
        return self.mount_in_foreground(["xrootdfs", self.path, "-f", "-o", remote],
                                        xrootd.CLIENT_ENV)


ALL = (Local, Floor, Byname, Verified, Uncached, Rclone, Sshfs, Xrootdfs)
