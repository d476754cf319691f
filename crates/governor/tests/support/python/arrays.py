"""Reads a file as an array of rows.

arrays.py COMMAND PATH COUNT [timed] [random]

For the command "column", COUNT is the length of a row in bytes.
With "timed" it prints the seconds that it took; with "random" it advises MADV_RANDOM.
"""

import mmap
import sys
import time

import numpy

ROW_BYTES = 4096
BATCH_ROWS = 64


def main():
    command, path, count, *rest = sys.argv[1:]
    begun = time.monotonic()
    mapped = numpy.memmap(path, dtype=numpy.uint8, mode="r")
    if "random" in rest:
        mapped.base.madvise(mmap.MADV_RANDOM)
    rows = mapped.reshape(-1, ROW_BYTES)
    draws = numpy.random.default_rng(4)
    if command == "gather":
        chosen = draws.integers(0, len(rows), int(count))
        total = rows[chosen].sum(dtype=numpy.uint64)
    elif command == "batches":
        order = draws.permutation(len(rows) // BATCH_ROWS)[: int(count)]
        total = 0
        for batch in order:
            first = int(batch) * BATCH_ROWS
            total += int(rows[first : first + BATCH_ROWS].sum(dtype=numpy.uint64))
    elif command == "column":
        total = mapped.reshape(-1, int(count))[:, 7].sum(dtype=numpy.uint64)
    else:
        total = rows.sum(dtype=numpy.uint64)
    print(total)
    if "timed" in rest:
        print(time.monotonic() - begun)


main()
