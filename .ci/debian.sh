#!/usr/bin/env bash
# Run `make test` in a minimal Debian system, as an ordinary user: .ci/debian.sh trixie 3.13; .ci/debian.sh forky 3.14 3.15
# The system is created in a temporary folder. Prints a line "RESULT …" for each Python; exits with 1 if a test failed.
# Needs root and mmdebstrap. Starts no Python after the Unix time BEGIN_BEFORE.
set -uo pipefail
cd "$(dirname "$0")/.."
suite=$1 && shift
if [ "$(date +%s)" -ge "${BEGIN_BEFORE:=99999999999}" ]; then
  for version; do echo "RESULT Python $version: not run, out of time"; done
  exit 0
fi
pythons=("${@/#/python}")
root=$(mktemp -d "/var/tmp/blogapi-$suite.XXXXXX")
trap 'rm -rf --one-file-system "$root"' EXIT
packages=$(IFS=,; echo "make,ca-certificates,${pythons[*]},${pythons[*]/%/-venv}" | tr ' ' ,)
if ! mmdebstrap --quiet --variant=minbase --include="$packages" --aptopt='Acquire::Check-Valid-Until "false"' \
    --aptopt='Acquire::Retries "2"' "$suite" "$root" 2>"$root.log"; then
  for version; do echo "RESULT Python $version: not run, because Debian $suite could not be installed: $(grep -v '^I:' "$root.log" | tail -1)"; done
  rm -f "$root.log"
  exit 0
fi
rm -f "$root.log"
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
chroot "$root" useradd --create-home --uid 1234 tester
status=0
for version; do
  if [ "$(date +%s)" -ge "$BEGIN_BEFORE" ]; then
    echo "RESULT Python $version: not run, out of time"
    continue
  fi
  SECONDS=0
  git clone --quiet . "$root/home/tester/$version"
  chroot "$root" chown -R tester: "/home/tester/$version"
  # The mounts disappear with the namespace.
  make_inside() {
    unshare --mount sh -c '
      mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" &&
      exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/home/tester LANG=C.UTF-8 PIP_DEFAULT_TIMEOUT=180 \
        chroot --userspec=tester: "$1" make --directory="/home/tester/$2" "PYTHON=python$2" "$3"' - "$root" "$version" "$1"
  }
  if ! make_inside .venv/tested; then result="not run, because its dependencies could not be installed,"
  elif make_inside test; then result=passed
  else result=FAILED status=1; fi
  echo "RESULT Python $version: $result in $SECONDS s, Debian $suite, as an ordinary user"
done
exit $status
