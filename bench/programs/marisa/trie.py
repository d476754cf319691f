"""marisa-trie: a compressed set of strings in a mapped file, asked for keys and prefixes."""

import os
import random
import sys

import marisa_trie

KEYS = 6_000_000


def make(path, seed):
    generator = random.Random(seed)
    trie = marisa_trie.Trie(
        (f"{generator.getrandbits(96):024x}" for _ in range(KEYS)), order=marisa_trie.LABEL_ORDER
    )
    trie.save(os.path.join(path, "keys.marisa"))


def gets(path, seed):
    trie = marisa_trie.Trie().mmap(os.path.join(path, "keys.marisa"))
    generator = random.Random(seed)
    total = 0
    for _ in range(2000):
        total += trie[f"{generator.getrandbits(96):024x}"]
    print(total)


if __name__ == "__main__":
    way, where, how_seeded = sys.argv[1:]
    globals()[way](where, int(how_seeded))
