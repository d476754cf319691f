"""Prints the events of a recording, one a line: its thread, its wait in nanoseconds, what it is."""

import struct
import sys
import zlib

KINDS = {  # numbers, then whether a text follows
    1: ("process", 2, "text"), 2: ("thread", 2, ""),
    4: ("file", 3, "text"), 5: ("open", 1, ""), 6: ("map", 7, ""), 7: ("unmap", 1, ""),
    8: ("unmap", 3, ""), 9: ("protect", 4, ""), 10: ("move", 3, ""), 11: ("madvise", 4, ""),
    12: ("fadvise", 4, ""), 13: ("readahead", 3, ""), 14: ("read", 3, ""), 15: ("truncate", 2, ""),
    16: ("close", 1, ""), 17: ("exit", 1, ""), 18: ("lost", 1, ""), 19: ("gap", 2, ""),
    20: ("memory", 3, ""), 21: ("cached", 3, ""), 22: ("unseen", 3, ""),
}


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        self.at += count
        return self.data[self.at - count:self.at]

    def number(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def part(self):
        length, stands = self.number(), self.number()
        data = self.take(stands)
        return data if length == stands else zlib.decompress(data, -15)


def wait(byte):
    return byte if byte < 8 else (4 + byte % 4) << (byte // 4 - 1)


def runs(data):
    data = Bytes(data)
    while data.at < len(data.data):
        value, count = data.number(), data.number()
        yield from [value] * count


def pages(block, mappings):
    coding, width, base = block.take(1)[0], block.take(1)[0], block.number()
    parts = [block.part() for _ in range(1 if coding == 2 else width)]
    before = {}
    for number, mapping in enumerate(mappings):
        if coding == 2:
            value = parts[0][number * width:(number + 1) * width]
        else:
            value = bytes(part[number] for part in parts)
        value = int.from_bytes(value, "little")
        if coding == 1:
            value = value // 2 if value % 2 == 0 else -(value // 2) - 1
            value = (before.get(mapping, 0) + value) % 2**64
            before[mapping] = value
        yield base + value


def block(data):
    data = Bytes(data)
    touches, count = data.number(), data.number()
    others = Bytes(data.part())
    threads, mappings = list(runs(data.part())), list(runs(data.part()))
    columns = [threads, mappings, list(pages(data, mappings))]
    columns += [[wait(byte) for byte in data.part()], list(runs(data.part()))]
    assert [len(column) for column in columns] == [touches] * 5
    touch = ((t, w, "touch", m, p, x) for t, m, p, w, x in zip(*columns))
    for _ in range(count):
        for _ in range(others.number()):
            yield next(touch)
        thread, waited = others.number(), wait(others.take(1)[0])
        name, numbers, behind = KINDS[others.take(1)[0]]
        fields = [others.number() for _ in range(numbers)]
        if behind:
            fields.append(others.take(others.number()).hex())
        yield (thread, waited, name, *fields)
    yield from touch


def frames(file):
    assert file.read(8) == b"\x89FMREC\r\n"
    assert file.read(4) in (b"\x01\0\0\0", b"\x02\0\0\0")
    while True:
        head = file.read(13)
        kind, length, checksum, of_head = struct.unpack("<cIII", head)
        data = file.read(length)
        assert (zlib.crc32(head[:9]), zlib.crc32(data)) == (of_head, checksum)
        if kind == b"E":
            return
        if kind == b"B":
            yield data


with open(sys.argv[1], "rb") as recording:
    for contents in frames(recording):
        for event in block(contents):
            print(*event)
