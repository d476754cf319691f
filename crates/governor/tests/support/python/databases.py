"""Makes and reads an LMDB database.

databases.py COMMAND PATH [COUNT [LENGTH]] [timed] [random]

With "timed" it prints the seconds that it took; with "random" it has lmdb advise MADV_RANDOM.
"""

import random
import sys
import time
import zlib

import lmdb

VALUE_BYTES = 2000


def key(number):
    return b"%012d" % number


def make(path, count):
    environment = lmdb.open(path, subdir=False, map_size=8 << 30, sync=False)
    with environment.begin(write=True) as transaction:
        draws = random.Random(1)
        for number in range(count):
            value = draws.getrandbits(64).to_bytes(8, "little") * (VALUE_BYTES // 8)
            transaction.put(key(number), value, append=True)
    environment.sync(True)


def gets(transaction, entries, count):
    draws = random.Random(2)
    for _ in range(count):
        yield transaction.get(key(draws.randrange(entries)))


def ranges(transaction, entries, count, length):
    """Entries in order, LENGTH bytes of them at a time."""
    draws = random.Random(3)
    along = length // VALUE_BYTES
    cursor = transaction.cursor()
    for _ in range(count):
        cursor.set_key(key(draws.randrange(entries - along)))
        for value, _ in zip(cursor.iternext(keys=False), range(along)):
            yield value


def scan(transaction):
    for value in transaction.cursor().iternext(keys=False):
        yield value


def main():
    command, path, *rest = sys.argv[1:]
    numbers = [int(word) for word in rest if word.isdigit()]
    if command == "make":
        return make(path, *numbers)
    begun = time.monotonic()
    # A mapping that is longer than its file, as usual.
    options = {"map_size": 8 << 30, "readahead": "random" not in rest}
    environment = lmdb.open(path, subdir=False, readonly=True, lock=False, **options)
    with environment.begin(buffers=True) as transaction:
        entries = transaction.stat()["entries"]
        if command == "gets":
            values = gets(transaction, entries, *numbers)
        elif command == "ranges":
            values = ranges(transaction, entries, *numbers)
        else:
            values = scan(transaction)
        digest = 0
        for value in values:
            digest = zlib.crc32(value, digest)
    print("%x" % digest)
    if "timed" in rest:
        print(time.monotonic() - begun)


main()
