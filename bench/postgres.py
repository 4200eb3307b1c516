"""A PostgreSQL server of a run's own, on a Unix socket in a directory of its own."""

import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import tempfile

# The server refuses to be root.
USER = "postgres"


def programs():
    """The directory with the latest server's programs; None if there is none."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


class Server:
    """It runs from `start` to `stop`; what is acknowledged is synced, as in production."""

    def __init__(self, parent):
        # The server's user could not enter the directory of the run.
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="byname-pg-", dir=parent))
        self.bin = programs()
        self.is_root = os.getuid() == 0

    def run(self, program, *words):
        """Runs one of the server's programs as the server's user."""
        argv = [str(self.bin / program), *map(str, words)]
        if self.is_root:
            argv = ["setpriv", "--reuid", USER, "--regid", USER, "--init-groups", "--", *argv]
        log = self.directory / "command.log"
        # Into a file, not a pipe: the server inherits it, and a pipe would not end.
        with open(log, "wb") as out:
            done = subprocess.run(argv, check=False, cwd="/", stdin=subprocess.DEVNULL, stdout=out,
                                  stderr=subprocess.STDOUT)
        text = log.read_text(errors="replace")
        if done.returncode:
            sys.exit(f"{program}: {text}")
        return text.strip()

    def start(self):
        """Makes the server and its database; where that is."""
        if self.is_root:
            user = pwd.getpwnam(USER)
            os.chown(self.directory, user.pw_uid, user.pw_gid)
        self.run("initdb", "-D", self.data(), "-A", "trust", "-U", "byname", "-E", "UTF8",
                 "--locale=C")
        options = (f"-c listen_addresses= -c unix_socket_directories={self.directory} "
                   "-c shared_buffers=256MB -c max_wal_size=2GB")
        self.run("pg_ctl", "-D", self.data(), "-l", self.directory / "log", "-w", "-o", options,
                 "start")
        self.run("createdb", "-h", self.directory, "-U", "byname", "site")
        return f"postgres:host={self.directory} user=byname dbname=site"

    def data(self):
        """Its own directory."""
        return self.directory / "data"

    def stored_bytes(self):
        """Octets of the database."""
        return int(self.run("psql", "-Atqc", "SELECT pg_database_size('site')", "-h",
                            self.directory, "-U", "byname", "site"))

    def stop(self):
        """Ends it, and removes what it has."""
        if (self.data() / "postmaster.pid").exists():
            self.run("pg_ctl", "-D", self.data(), "-m", "immediate", "stop")
        shutil.rmtree(self.directory)
