"""Annoy: a forest of vectors in one mapped file, asked for neighbours."""

import os
import sys

import annoy
import numpy

DIMENSIONS, VECTORS, TREES = 128, 250_000, 20


def make(path, seed):
    generator = numpy.random.default_rng(seed)
    index = annoy.AnnoyIndex(DIMENSIONS, "euclidean")
    index.set_seed(seed)
    for number, vector in enumerate(generator.random((VECTORS, DIMENSIONS), dtype=numpy.float32)):
        index.add_item(number, vector)
    index.build(TREES, n_jobs=1)
    index.save(os.path.join(path, "vectors.ann"))


def query(path, seed, count, visits):
    generator = numpy.random.default_rng(seed + 1)
    index = annoy.AnnoyIndex(DIMENSIONS, "euclidean")
    index.load(os.path.join(path, "vectors.ann"))
    total = 0
    for vector in generator.random((count, DIMENSIONS), dtype=numpy.float32):
        total += sum(index.get_nns_by_vector(vector, 10, search_k=visits))
    print(total)


def few(path, seed):
    query(path, seed, 4, 2000)


def many(path, seed):
    query(path, seed, 60, 4000)


if __name__ == "__main__":
    way, where, how_seeded = sys.argv[1:]
    globals()[way](where, int(how_seeded))
