"""NumPy memmap: shuffled batches of rows, and one column of a table."""

import os
import sys
import zlib

import numpy

ROWS, COLUMNS = 98_304, 2048  # float32: rows of 8 KiB, 768 MiB


def make(path, seed):
    generator = numpy.random.default_rng(seed)
    with open(os.path.join(path, "table.npy"), "wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (ROWS, COLUMNS)}
        numpy.lib.format.write_array_header_1_0(file, header)
        for _ in range(0, ROWS, 8192):
            generator.random((8192, COLUMNS), dtype=numpy.float32).tofile(file)


def open_table(path):
    return numpy.load(os.path.join(path, "table.npy"), mmap_mode="r")


def batches(path, seed):
    """An epoch's beginning: batches of 32 rows, 256 KiB, in shuffled order."""
    table = open_table(path)
    starts = numpy.random.default_rng(seed).permutation(ROWS // 32)[:400] * 32
    checksum = 0
    for start in starts:
        checksum = zlib.crc32(numpy.ascontiguousarray(table[start : start + 32]), checksum)
    print(checksum)


def rows(path, seed):
    """Single rows in no order: embeddings looked up by number."""
    table = open_table(path)
    checksum = 0
    for row in numpy.random.default_rng(seed).integers(0, ROWS, 3000):
        checksum = zlib.crc32(numpy.ascontiguousarray(table[row]), checksum)
    print(checksum)


def column(path, seed):
    """Every 32nd row's value in one column: a stride of 256 KiB."""
    column = seed % COLUMNS
    print(repr(float(open_table(path)[::32, column].sum(dtype=numpy.float64))))


if __name__ == "__main__":
    way, where, how_seeded = sys.argv[1:]
    globals()[way](where, int(how_seeded))
