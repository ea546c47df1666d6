#!/bin/sh
# Copies the database of a running EventStoreDB or KurrentDB node into an empty directory, which a stopped node can then start on:
#
#   deploy/backup-eventstoredb.sh /var/lib/eventstore /backup/2026-11-21
#
# The order makes the copy one moment of the log: indexes before checkpoints, and checkpoints before chunks, so that
# no file points to what was copied before it was written. No scavenge may run meanwhile. Secondary indexes (KurrentDB
# since 25.1, unless switched off) are no part of that order: a database with them is refused.
set -eu
from=${1:?the database directory is missing}
to=${2:?the backup directory is missing}

if [ ! -e "$from/chaser.chk" ]; then
  echo "$from holds no EventStoreDB database" >&2
  exit 1
fi
if [ -n "$(find "$from" -name 'kurrent.ddb*' 2>/dev/null | head -n 1)" ]; then
  echo "$from has secondary indexes (kurrent.ddb), whose files must not be copied while the node runs: take a snapshot of its disk, or stop the node and copy the whole directory" >&2
  exit 1
fi
mkdir -p "$to"
if [ -n "$(ls -A "$to")" ]; then
  echo "$to is not empty" >&2
  exit 1
fi

# index files come and go with merges; they belong together when the map did not change while they were copied
copy_index() {
  rm -rf "$to/index"
  mkdir "$to/index"
  cp -p "$from/index/indexmap" "$to/index/" || return 1
  for file in "$from"/index/*; do
    if [ -f "$file" ] && [ "${file##*/}" != indexmap ]; then
      cp -p "$file" "$to/index/" || return 1
    fi
  done
  cmp -s "$from/index/indexmap" "$to/index/indexmap"
}

if [ -e "$from/index/indexmap" ]; then
  tries=0
  until copy_index; do
    tries=$((tries + 1))
    if [ "$tries" -ge 10 ]; then
      echo "the index of $from does not come to rest" >&2
      exit 1
    fi
    sleep 1
  done
fi
for part in stream-existence/streamExistenceFilter.chk stream-existence/streamExistenceFilter.dat \
  scavenging/scavenging.db; do
  if [ -e "$from/index/$part" ]; then
    mkdir -p "$to/index/${part%/*}"
    cp -p "$from/index/$part" "$to/index/$part"
  fi
done

for checkpoint in chaser epoch writer proposal; do
  cp -p "$from/$checkpoint.chk" "$to/"
done
cp -p "$from"/chunk-* "$to/"

# the log is cut where it was surely complete
cp -p "$to/chaser.chk" "$to/truncate.chk"
