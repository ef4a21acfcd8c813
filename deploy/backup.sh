#!/bin/sh
# Copies sessions while servers and terminals write them: backup.sh <sessions folder> <target folder>
# Logs come first, then blobs: a blob is always stored before the line that names it, so no copied line lacks its blob.
# All other files are rebuilt from these, belong to a running process, or hold text that is not in the log yet.
set -eu
[ $# -eq 2 ] || { echo "usage: backup.sh <sessions folder> <target folder>" >&2; exit 2; }
mkdir -p -m 700 "$2"
target=$(cd "$2" && pwd)
cd "$1"

copy() {
  find . -path './.erasing' -prune -o -type f "$@" -exec sh -c '
    target=$0
    for file do
      [ -e "$file" ] || continue # It was erased or moved meanwhile.
      mkdir -p -m 700 "$target/${file%/*}"
      cp -p "$file" "$target/$file"
    done' "$target" {} +
}

copy -name events.jsonl
copy -path '*/blobs/*'
