#!/usr/bin/env bash
# Run `make test` in a minimal Debian system, as an ordinary user: .ci/debian.sh trixie 3.13; .ci/debian.sh forky 3.14 3.15
# Needs root and mmdebstrap. Exits with 1 if a test failed.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$(mktemp -d "${TMPDIR:-/var/tmp}/blogapi-debian.XXXXXX")
trap 'rm -rf --one-file-system "$root"' EXIT
tar --extract --file="$(.ci/base.sh "$@")" --directory="$root"
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
chroot "$root" useradd --create-home --uid 1234 tester
status=0
for version in "${@:2}"; do
  git clone --quiet . "$root/home/tester/$version"
  chroot "$root" chown -R tester: "/home/tester/$version"
  # The mounts disappear with the namespace. PIP_COMPILE=0: most installed modules are never imported.
  unshare --mount sh -c '
    mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" &&
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/home/tester LANG=C.UTF-8 \
      PIP_DEFAULT_TIMEOUT=180 PIP_COMPILE=0 \
      chroot --userspec=tester: "$1" make --directory="/home/tester/$2" "PYTHON=python$2" test' - "$root" "$version" ||
    status=1
done
exit $status
