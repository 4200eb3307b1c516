"""Where the peers are, which versions they are pinned to, and whether they are here."""

import dataclasses
import os
import pathlib
import re

INTEROP = pathlib.Path(__file__).resolve().parent.parent
REPO = INTEROP.parent
ROOT = pathlib.Path(os.environ.get("BYNAME_PEERS", REPO / ".cache/peers"))

NDND = ROOT / "bin/ndnd"
NDNTS = ROOT / "ndnts"
PYTHON = ROOT / "python/bin/python"
PYNDNTOOLS = ROOT / "python/bin/pyndntools"
PYNFDC = ROOT / "python/bin/pynfdc"
UPROOT_PYTHON = ROOT / "uproot/bin/python"
ROOT_PYTHON = ROOT / "root/bin/python"
ANALYSIS_PYTHON = ROOT / "analysis/bin/python"
SPARK_PYTHON = ROOT / "spark/bin/python"
HADOOP = ROOT / "hadoop"
FLINK = ROOT / "flink/classpath"
HDFS = ROOT / "hdfs/classpath"
# Spark 3.5's, the last of the line before, the one that bindings/java is built with, the newest.
HADOOP_VERSIONS = ("3.3.4", "3.3.6", "3.4.2", "3.5.0")
JAVA_25 = ROOT / "java/home/bin/java"


@dataclasses.dataclass(frozen=True)
class Peer:
    """One independent implementation, at one version."""

    name: str
    version: str
    witness: pathlib.Path
    # Too large for CI: tests that need it exist only where it is installed.
    is_optional: bool = False

    @property
    def _stamp(self):
        return ROOT / f".{self.name}.version"

    def is_installed(self):
        """True if this very version was installed completely."""
        stamped = self._stamp.exists() and self._stamp.read_text().strip() == self.version
        return stamped and self.witness.exists()

    def mark_installed(self):
        """Remembers a completed installation; an interrupted one leaves no stamp."""
        if not self.witness.exists():
            raise FileNotFoundError(f"{self.witness} is missing after the installation")
        self._stamp.write_text(self.version + "\n")


def _pin(file, pattern):
    """The version written in a manifest, so that it is written in one place only."""
    return re.search(pattern, (INTEROP / file).read_text()).group(1)


PEERS = {
    peer.name: peer
    for peer in (
        Peer("ndnd", _pin("ndnd/go.mod", r"named-data/ndnd (v\S+)"), NDND),
        Peer(
            "ndnts",
            _pin("ndnts/package.json", r'"@ndn/fileserver": "([^"]+)"'),
            NDNTS / "node_modules/@ndn/ws-transport/package.json",
        ),
        Peer("python-ndn", _pin("python-ndn/requirements.txt", r"python-ndn==(\S+)"), PYNDNTOOLS),
        Peer("uproot", _pin("xrootd/requirements.txt", r"uproot==(\S+)"), UPROOT_PYTHON),
        Peer("analysis", _pin("mount/requirements.txt", r"h5py==(\S+)"), ANALYSIS_PYTHON),
        Peer("spark", _pin("hadoop/requirements.txt", r"pyspark==(\S+)"),
             ROOT / "spark/bin/spark-submit"),
        Peer("hadoop-versions", "+".join(HADOOP_VERSIONS), JAVA_25, True),
        Peer("flink", _pin("hadoop/flink/pom.xml", r"<flink.version>(\S+)</"), FLINK, True),
        Peer("hdfs", _pin("hadoop/hdfs/pom.xml", r"<hadoop.version>(\S+)</"), HDFS, True),
        Peer("root", _pin("xrootd/requirements-root.txt", r"root==(\S+)"), ROOT_PYTHON, True),
    )
}


def is_ci():
    """In continuous integration a missing peer is a failure, elsewhere it is a skip."""
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")
