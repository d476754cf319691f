"""Arrow: a table in record batches, mapped; columns of it, batches of it, rows of it."""

import os
import sys

import numpy
import pyarrow
import pyarrow.compute

BATCHES, ROWS, COLUMNS = 96, 65_536, 14  # columns of 512 KiB a batch


def make(path, seed):
    generator = numpy.random.default_rng(seed)
    names = [f"c{column}" for column in range(COLUMNS)]
    schema = pyarrow.schema([(name, pyarrow.int64()) for name in names])
    with pyarrow.OSFile(os.path.join(path, "table.arrow"), "wb") as sink:
        with pyarrow.ipc.new_file(sink, schema) as writer:
            for _ in range(BATCHES):
                columns = [generator.integers(0, 1 << 40, ROWS) for _ in names]
                writer.write_batch(pyarrow.record_batch(columns, names=names))


def open_table(path):
    return pyarrow.ipc.open_file(pyarrow.memory_map(os.path.join(path, "table.arrow"), "r"))


def columns(path, seed):
    """Two columns of each batch: runs of 512 KiB at a stride of 7 MiB."""
    table = open_table(path).read_all()
    first, second = seed % COLUMNS, (seed + 5) % COLUMNS
    print([pyarrow.compute.sum(table.column(at)).as_py() for at in (first, second)])


def rows(path, seed):
    """Rows at random, all of their columns: a page for each."""
    file = open_table(path)
    generator = numpy.random.default_rng(seed)
    total = 0
    for number in generator.integers(0, BATCHES * ROWS, 200):
        batch = file.get_batch(int(number) // ROWS)
        total += sum(batch.column(at)[int(number) % ROWS].as_py() for at in range(COLUMNS))
    print(total)


if __name__ == "__main__":
    way, where, how_seeded = sys.argv[1:]
    globals()[way](where, int(how_seeded))
