"""USearch: a graph of vectors, viewed in its file and searched."""

import os
import sys

import numpy
from usearch.index import Index

DIMENSIONS, VECTORS = 256, 60_000


def make(path, seed):
    generator = numpy.random.default_rng(seed)
    index = Index(ndim=DIMENSIONS, metric="l2sq", dtype="f32", connectivity=8, expansion_add=24)
    vectors = generator.random((VECTORS, DIMENSIONS), dtype=numpy.float32)
    index.add(numpy.arange(VECTORS), vectors, threads=1)
    index.save(os.path.join(path, "vectors.usearch"))


def search(path, seed):
    generator = numpy.random.default_rng(seed + 1)
    index = Index.restore(os.path.join(path, "vectors.usearch"), view=True)
    queries = generator.random((150, DIMENSIONS), dtype=numpy.float32)
    found = index.search(queries, 10, threads=1)
    print(int(found.keys.sum()))


if __name__ == "__main__":
    way, where, how_seeded = sys.argv[1:]
    globals()[way](where, int(how_seeded))
