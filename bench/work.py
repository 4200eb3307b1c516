"""What is moved: one large file, or a tree of small ones. Random bytes, in the page cache."""

import filecmp
import os
import pathlib

CHUNK_BYTES = 1 << 22
FILE = "file.bin"
TREE = "tree"
FILES_PER_DIRECTORY = 1000


class File:
    """One file of random bytes."""

    is_tree = False
    unit = "GiB"

    def __init__(self, directory, size_bytes):
        self.directory = pathlib.Path(directory)
        self.size_bytes = size_bytes
        self.path = self.directory / FILE
        self.units = size_bytes / (1 << 30)

    def make(self):
        """Writes it; what was written stays in the page cache."""
        with open(self.path, "wb") as out:
            for offset in range(0, self.size_bytes, CHUNK_BYTES):
                out.write(os.urandom(min(CHUNK_BYTES, self.size_bytes - offset)))
        self.path.chmod(0o644)

    def under(self, name):
        """The published name of the work."""
        return f"{name}/{FILE}"

    def is_same(self, out):
        """Whether a copy is equal, byte by byte."""
        return os.path.isfile(out) and filecmp.cmp(self.path, out, shallow=False)


class Tree:
    """Many small files in directories of a thousand."""

    is_tree = True
    unit = "file"

    def __init__(self, directory, count, size_bytes):
        self.directory = pathlib.Path(directory)
        self.path = self.directory / TREE
        self.count = count
        self.size_bytes = size_bytes
        self.units = count

    def make(self):
        """Writes all of them."""
        for number in range(self.count):
            path = self.path / f"{number // FILES_PER_DIRECTORY:03}" / f"{number:06}.dat"
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_bytes(os.urandom(self.size_bytes))

    def under(self, name):
        """The published name of the work."""
        return f"{name}/{TREE}"

    def is_same(self, out):
        """Whether a copied tree has the same files with the same bytes, and no others."""
        return listing(self.path) == listing(out)


def listing(top):
    """{relative path: content}"""
    top = pathlib.Path(top)
    return {path.relative_to(top): path.read_bytes()
            for path in top.rglob("*") if path.is_file()}
