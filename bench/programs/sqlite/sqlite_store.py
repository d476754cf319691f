"""SQLite with mmap_size: look-ups, ranges by an index, a scan, and full-text search."""

import os
import random
import sqlite3
import sys
import zlib

RECORDS = 1_000_000
DOCUMENTS = 300_000
VOCABULARY = 200_000


def connect(path, name):
    database = sqlite3.connect(f"file:{os.path.join(path, name)}?immutable=1", uri=True)
    database.execute(f"PRAGMA mmap_size = {2 << 30}")
    # SQLite's own cache stays small, so that pages come from the mapping.
    database.execute("PRAGMA cache_size = 100")
    return database


def create(path, name):
    database = sqlite3.connect(os.path.join(path, name))
    database.execute("PRAGMA journal_mode = OFF")
    database.execute("PRAGMA synchronous = OFF")
    return database


def make(path, seed):
    generator = random.Random(seed)
    database = create(path, "records.db")
    database.execute("CREATE TABLE record (id INTEGER PRIMARY KEY, place INTEGER, body BLOB)")
    places = list(range(RECORDS))
    generator.shuffle(places)
    records = ((place, generator.randbytes(450)) for place in places)
    database.executemany("INSERT INTO record (place, body) VALUES (?, ?)", records)
    database.execute("CREATE UNIQUE INDEX record_place ON record (place)")
    database.commit()
    database.close()


def word(generator):
    """Few words are in many documents and many in few."""
    return f"w{generator.randrange(1 + generator.randrange(VOCABULARY))}"


def make_text(path, seed):
    generator = random.Random(seed)
    database = create(path, "text.db")
    database.execute("CREATE VIRTUAL TABLE document USING fts5 (body)")
    texts = ((" ".join(word(generator) for _ in range(60)),) for _ in range(DOCUMENTS))
    database.executemany("INSERT INTO document VALUES (?)", texts)
    database.execute("INSERT INTO document (document) VALUES ('optimize')")
    database.commit()
    database.close()


def gets(path, seed):
    generator = random.Random(seed)
    database = connect(path, "records.db")
    checksum = 0
    for _ in range(2000):
        found = database.execute(
            "SELECT body FROM record WHERE id = ?", (1 + generator.randrange(RECORDS),)
        )
        checksum = zlib.crc32(found.fetchone()[0], checksum)
    print(checksum)


def ranges(path, seed):
    """Ranges in the order of an index: the records are all over the file."""
    generator = random.Random(seed)
    database = connect(path, "records.db")
    checksum = 0
    for _ in range(20):
        first = generator.randrange(RECORDS - 200)
        found = database.execute(
            "SELECT body FROM record WHERE place BETWEEN ? AND ? ORDER BY place",
            (first, first + 199),
        )
        for (body,) in found:
            checksum = zlib.crc32(body, checksum)
    print(checksum)


def scan(path, _seed):
    database = connect(path, "records.db")
    print(database.execute("SELECT count(*), sum(place), sum(length(body)) FROM record").fetchone())


def search(path, seed):
    generator = random.Random(seed)
    database = connect(path, "text.db")
    found = letters = 0
    for _ in range(150):
        query = f"{word(generator)} OR {word(generator)}"
        rows = database.execute(
            "SELECT body FROM document WHERE document MATCH ? LIMIT 20", (query,)
        )
        for (body,) in rows:
            found += 1
            letters += len(body)
    print(found, letters)


if __name__ == "__main__":
    way, where, how_seeded = sys.argv[1:]
    globals()[way](where, int(how_seeded))
