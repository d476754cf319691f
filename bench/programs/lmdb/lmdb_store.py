"""LMDB by py-lmdb: look-ups and ranges over a tree that was filled in random order."""

import os
import random
import struct
import sys
import threading
import zlib

import lmdb

RECORDS = 800_000


def make(path, seed):
    generator = random.Random(seed)
    keys = list(range(RECORDS))
    generator.shuffle(keys)
    environment = lmdb.open(path, map_size=4 << 30, sync=False)
    for first in range(0, RECORDS, 50_000):
        with environment.begin(write=True) as transaction:
            for key in keys[first : first + 50_000]:
                transaction.put(struct.pack(">Q", key), generator.randbytes(400))
    environment.sync(True)
    environment.close()
    os.remove(os.path.join(path, "lock.mdb"))


def open_for_reading(path):
    return lmdb.open(path, readonly=True, lock=False, readahead=True)


def get(environment, seed, count):
    generator = random.Random(seed)
    checksum = 0
    with environment.begin() as transaction:
        for _ in range(count):
            key = struct.pack(">Q", generator.randrange(RECORDS))
            checksum = zlib.crc32(transaction.get(key), checksum)
    return checksum


def gets(path, seed):
    print(get(open_for_reading(path), seed, 2000))


def ranges(path, seed):
    generator = random.Random(seed)
    checksum = 0
    with open_for_reading(path).begin() as transaction:
        cursor = transaction.cursor()
        for _ in range(300):
            cursor.set_range(struct.pack(">Q", generator.randrange(RECORDS - 200)))
            for _ in range(200):
                checksum = zlib.crc32(cursor.value(), checksum)
                cursor.next()
    print(checksum)


def scan(path, _seed):
    checksum = 0
    with open_for_reading(path).begin() as transaction:
        for value in transaction.cursor().iternext(keys=False, values=True):
            checksum = zlib.crc32(value[:8], checksum)
    print(checksum)


def threads(path, seed):
    environment = open_for_reading(path)
    checksums = [0] * 8

    def work(index):
        checksums[index] = get(environment, seed + index, 500)

    workers = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(checksums)


def prefork(path, seed):
    """Four workers that inherit the parent's mapping, as a server that forks before it serves."""
    environment = open_for_reading(path)
    transaction = environment.begin()
    workers = []
    for index in range(4):
        reader, writer = os.pipe()
        worker = os.fork()
        if worker == 0:
            generator = random.Random(seed + index)
            checksum = 0
            for _ in range(500):
                key = struct.pack(">Q", generator.randrange(RECORDS))
                checksum = zlib.crc32(transaction.get(key), checksum)
            os.write(writer, struct.pack("I", checksum))
            os._exit(0)
        os.close(writer)
        workers.append((worker, reader))
    for worker, reader in workers:
        print(os.read(reader, 4).hex())
        _, status = os.waitpid(worker, 0)
        if status:
            sys.exit(f"worker: {status}")


if __name__ == "__main__":
    way, where, how_seeded = sys.argv[1:]
    globals()[way](where, int(how_seeded))
