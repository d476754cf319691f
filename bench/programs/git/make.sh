#!/bin/sh
# make.sh DIRECTORY SEED: a repository with one large pack of objects that do not compress.
set -eu
cd "$1"
git init -q --bare objects.git
"$3" - "$2" <<'PYTHON' | git -C objects.git -c core.bigFileThreshold=1 fast-import --quiet
import random, sys
generator = random.Random(int(sys.argv[1]))
out = sys.stdout.buffer
for number in range(1, 40_001):
    data = generator.randbytes(generator.randrange(1000, 30_000))
    out.write(b"blob\nmark :%d\ndata %d\n%s\n" % (number, len(data), data))
out.write(b"commit refs/heads/main\ncommitter a <a@example.org> 0 +0000\ndata 0\n")
for number in range(1, 40_001):
    out.write(b"M 100644 :%d d%02d/f%05d\n" % (number, number % 100, number))
PYTHON
# The names of the objects to ask for, in an order of the seed.
git -C objects.git ls-tree -r main | awk '{print $3}' | sort > names
"$3" -c '
import random, sys
names = sys.stdin.read().split()
print("\n".join(random.Random(int(sys.argv[1])).sample(names, 1500)))
' "$2" < names > asked
rm names
