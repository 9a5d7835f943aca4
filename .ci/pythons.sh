#!/usr/bin/env bash
# Run `make test` on Python 3.12 to 3.15, from pyenv and from Debian suites in a folder. Prints a line for each at the
# end, and exits with status 1 if a test failed. A Python that is not available is reported, but is not a failure.
# Given a number of seconds, starts no Python after that time.
set -uo pipefail
cd "$(dirname "$0")/.."
export BEGIN_BEFORE=$(($(date +%s) + ${1:-86400}))
results=$(mktemp)
trap 'rm -f "$results"' EXIT
status=0

on_pyenv() {  # VERSION
  local python folder result
  python=$(compgen -G "$HOME/.pyenv/versions/$1.*/bin/python$1" | tail -1)
  if [ -z "$python" ]; then
    echo "RESULT Python $1: not run, because pyenv does not have it"
    return 0
  fi
  if [ "$(date +%s)" -ge "$BEGIN_BEFORE" ]; then
    echo "RESULT Python $1: not run, out of time"
    return 0
  fi
  SECONDS=0
  folder=$(mktemp -d /var/tmp/blogapi.XXXXXX)
  git clone --quiet . "$folder"
  if ! make --directory="$folder" PYTHON="$python" .venv/tested; then
    result="not run, because its dependencies could not be installed,"
  elif make --directory="$folder" PYTHON="$python" test; then result=passed
  else result=FAILED; fi
  rm -rf "$folder"
  echo "RESULT Python $1: $result in $SECONDS s, pyenv"
  [ "$result" != FAILED ]
}

if [ "$(date +%s)" -lt "$BEGIN_BEFORE" ] && ! command -v mmdebstrap >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq && apt-get install -qq -y --no-install-recommends mmdebstrap
fi
if command -v mmdebstrap >/dev/null && [ "$(id -u)" = 0 ]; then
  .ci/debian.sh forky 3.14 3.15 | tee -a "$results" || status=1
  .ci/debian.sh trixie 3.13 | tee -a "$results" || status=1
else
  echo "RESULT Python 3.14 and 3.15: not run, because Debian systems need root and mmdebstrap" | tee -a "$results"
  on_pyenv 3.13 | tee -a "$results" || status=1
fi
on_pyenv 3.12 | tee -a "$results" || status=1
echo "Python 3.11, or this machine's own, ran first. The others:"
sed -n 's/^RESULT //p' "$results"
exit $status
