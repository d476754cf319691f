"""A large text file, of words as in a log."""

import os
import random
import sys

WORDS = "accept bind close connect exec fork listen mmap open poll read recv send stat write".split()


def make(path, seed):
    generator = random.Random(seed)
    lines = [
        f"{generator.randrange(10**9):09d} {' '.join(generator.choices(WORDS, k=12))}\n"
        for _ in range(20_000)
    ]
    with open(os.path.join(path, "log.txt"), "w") as file:
        for _ in range(400):
            file.write("".join(generator.sample(lines, len(lines))))


if __name__ == "__main__":
    make(sys.argv[1], int(sys.argv[2]))
