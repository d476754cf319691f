"""Faiss: inverted lists of vectors that stay in a mapped file; a query reads a few lists whole."""

import os
import sys

import faiss
import numpy

DIMENSIONS, VECTORS, LISTS = 128, 800_000, 1024


def make(path, seed):
    generator = numpy.random.default_rng(seed)
    # Fixed centres: training them is not what is measured.
    centres = generator.random((LISTS, DIMENSIONS), dtype=numpy.float32)
    quantizer = faiss.IndexFlatL2(DIMENSIONS)
    quantizer.add(centres)
    index = faiss.IndexIVFFlat(quantizer, DIMENSIONS, LISTS)
    index.is_trained = True
    for _ in range(0, VECTORS, 50_000):
        near = centres[generator.integers(0, LISTS, 50_000)]
        noise = generator.standard_normal(near.shape, dtype=numpy.float32) * numpy.float32(0.02)
        index.add(near + noise)
    faiss.write_index(index, os.path.join(path, "vectors.ivf"))


def search(path, seed):
    faiss.omp_set_num_threads(1)
    generator = numpy.random.default_rng(seed + 1)
    flags = faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY
    index = faiss.read_index(os.path.join(path, "vectors.ivf"), flags)
    index.nprobe = 4
    found = 0
    for query in generator.random((40, 1, DIMENSIONS), dtype=numpy.float32):
        _, numbers = index.search(query, 5)
        found += int(numbers.sum())
    print(found)


if __name__ == "__main__":
    way, where, how_seeded = sys.argv[1:]
    globals()[way](where, int(how_seeded))
