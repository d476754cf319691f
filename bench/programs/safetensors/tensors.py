"""safetensors: a model's weights in one file; some tensors are read whole, of others a slice."""

import os
import sys
import zlib

import numpy
from safetensors import safe_open
from safetensors.numpy import save_file

LAYERS = 20


def make(path, seed):
    generator = numpy.random.default_rng(seed)
    tensors = {}
    for layer in range(LAYERS):
        for part, shape in (("attention", (2048, 1024)), ("expand", (4096, 1024)), ("norm", (1024,))):
            tensors[f"layer{layer:02}.{part}"] = generator.random(shape, dtype=numpy.float32)
    tensors["embedding"] = generator.random((50_000, 1024), dtype=numpy.float32)
    save_file(tensors, os.path.join(path, "model.safetensors"))


def open_model(path):
    return safe_open(os.path.join(path, "model.safetensors"), framework="numpy")


def some(path, seed):
    """Every third layer whole, and 300 rows of the embedding."""
    checksum = 0
    with open_model(path) as model:
        for layer in range(0, LAYERS, 3):
            for part in ("attention", "expand", "norm"):
                checksum = zlib.crc32(model.get_tensor(f"layer{layer:02}.{part}"), checksum)
        embedding = model.get_slice("embedding")
        for row in numpy.random.default_rng(seed).integers(0, 50_000, 300):
            checksum = zlib.crc32(embedding[int(row) : int(row) + 1], checksum)
    print(checksum)


def whole(path, _seed):
    checksum = 0
    with open_model(path) as model:
        for name in model.keys():
            checksum = zlib.crc32(model.get_tensor(name), checksum)
    print(checksum)


if __name__ == "__main__":
    way, where, how_seeded = sys.argv[1:]
    globals()[way](where, int(how_seeded))
