"""Files of programs that analyse data, made and read. Run by the Python that has these libraries.

usage: programs.py make DIR | read DIR

`make` writes an HDF5 file, a ROOT file, an indexed BAM file and Parquet files. `read` reads parts
of each as their users do and prints, as one JSON object, what they found: of a mount it has to be
what it is of the directory that was published.
"""

import hashlib
import json
import pathlib
import sys

import duckdb
import h5py
import numpy
import pysam
import uproot

ROWS = 4000
COLUMNS = 500
EVENTS = 40_000
BRANCHES = 30
READS = 20_000
PARQUET_FILES = 4


def digest(array):
    """A short name for the octets of an array."""
    return hashlib.sha256(numpy.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def make_hdf5(directory, numbers):
    with h5py.File(directory / "image.h5", "w") as file:
        data = numbers.normal(size=(ROWS, COLUMNS)).astype("float32")
        image = file.create_dataset("run7/image", data=data, chunks=(100, 100),
                                    compression="gzip", compression_opts=1)
        image.attrs["detector"] = "cms"
        file.create_dataset("run7/plain", data=numbers.integers(0, 1 << 40, size=1_000_000))


def read_hdf5(directory):
    with h5py.File(directory / "image.h5", "r") as file:
        image, plain = file["run7/image"], file["run7/plain"]
        return [digest(image[1234:1300, 100:340]), digest(image[::97, 7]), digest(plain[-5000:]),
                digest(plain[::1000]), image.attrs["detector"], sorted(file["run7"])]


def make_root(directory, numbers):
    branches = {f"b{at}": numbers.normal(size=EVENTS) for at in range(BRANCHES)}
    with uproot.recreate(directory / "events.root") as file:
        file["Events"] = branches


def read_root(directory):
    with uproot.open(directory / "events.root") as file:
        tree = file["Events"]
        found = tree.arrays(["b3", "b17"], library="np")
        part = tree["b29"].array(entry_start=20_000, entry_stop=20_100, library="np")
        return [tree.num_entries, digest(found["b3"]), digest(found["b17"]), digest(part)]


def make_bam(directory, numbers):
    path = directory / "reads.bam"
    header = {"HD": {"VN": "1.6", "SO": "coordinate"},
              "SQ": [{"SN": "chr1", "LN": 50_000_000}, {"SN": "chr2", "LN": 30_000_000}]}
    with pysam.AlignmentFile(path, "wb", header=header) as out:
        for chromosome, length in ((0, 50_000_000), (1, 30_000_000)):
            for number, start in enumerate(sorted(numbers.integers(0, length - 200, READS))):
                read = pysam.AlignedSegment(out.header)
                read.query_name = f"r{chromosome}-{number}"
                read.reference_id, read.reference_start = chromosome, int(start)
                read.query_sequence = "".join(numbers.choice(list("ACGT"), 100))
                read.mapping_quality, read.cigarstring = 60, "100M"
                out.write(read)
    pysam.index(str(path))


def read_bam(directory):
    path = directory / "reads.bam"
    with pysam.AlignmentFile(path) as file:
        found = [(read.query_name, read.query_sequence)
                 for read in file.fetch("chr2", 10_000_000, 10_400_000)]
    # What `samtools view` prints: it is its code.
    text = pysam.view("-c", str(path), "chr1:20000000-21000000").strip()
    return [len(found), hashlib.sha256(repr(found).encode()).hexdigest()[:16], text]


def make_parquet(directory, _numbers):
    for part in range(PARQUET_FILES):
        duckdb.sql(f"COPY (SELECT i, i * 7 % 1000 AS g, hash(i) % 100000 AS h, 'row ' || i AS s "
                   f"FROM range({part * 250_000}, {(part + 1) * 250_000}) t(i)) "
                   f"TO '{directory}/part-{part}.parquet' (FORMAT parquet, ROW_GROUP_SIZE 50000)")


def read_parquet(directory):
    files = f"read_parquet('{directory}/part-*.parquet')"
    grouped = duckdb.sql(f"SELECT g, sum(h)::BIGINT FROM {files} WHERE g < 5 GROUP BY g ORDER BY g")
    one = duckdb.sql(f"SELECT s, h FROM {files} WHERE i = 777777")
    return [grouped.fetchall(), one.fetchall()]


KINDS = {"hdf5": (make_hdf5, read_hdf5), "root": (make_root, read_root),
         "bam": (make_bam, read_bam), "parquet": (make_parquet, read_parquet)}


def main():
    verb, directory = sys.argv[1], pathlib.Path(sys.argv[2])
    if verb == "make":
        numbers = numpy.random.default_rng(7)
        for make, _ in KINDS.values():
            make(directory, numbers)
    else:
        print(json.dumps({name: read(directory) for name, (_, read) in KINDS.items()}))


main()
