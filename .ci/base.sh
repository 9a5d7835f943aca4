#!/usr/bin/env bash
# Create a minimal Debian system with Pythons as a tar file, and print its path: .ci/base.sh trixie 3.13
# A file in the cache that is less than a week old is used as it is. Needs root and mmdebstrap.
set -euo pipefail
suite=$1 && shift
packages=make,ca-certificates,python3-venv
for version; do packages+=,python$version-venv; done
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/blogapi
file=$cache/$suite${*/#/-}.tar
if [ -z "$(find "$file" -mtime -7 2>/dev/null)" ]; then
  mkdir -p "$cache"
  trap 'rm -f "$file.$$"' EXIT
  mmdebstrap --quiet --variant=minbase --include="$packages" --format=tar --aptopt='Acquire::Check-Valid-Until "false"' \
    --aptopt='Acquire::Retries "5"' "$suite" "$file.$$" >&2
  mv "$file.$$" "$file"
fi
echo "$file"
