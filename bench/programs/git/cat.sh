#!/bin/sh
# cat.sh DIRECTORY: a checksum of objects out of all over the pack.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
exec git -C "$1/objects.git" cat-file --batch < "$1/asked" | cksum
