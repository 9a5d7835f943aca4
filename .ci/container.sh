#!/usr/bin/env bash
# Build deploy/Dockerfile with buildah, then run it as docs/deploying.md does: read-only, with the database in a volume,
# a key by `exec`, a post, a restart. The base image is a Debian system of the same name, so no registry is needed.
# Needs root, buildah, curl and mmdebstrap. Exits with 1 if something failed.
set -euo pipefail
cd "$(dirname "$0")/.."
base=$(sed -n 's/^FROM //p' deploy/Dockerfile)
work=$(mktemp -d "${TMPDIR:-/var/tmp}/blogapi-container.XXXXXX")
export BUILDAH_ISOLATION=chroot BUILDAH_FORMAT=docker
buildah() { command buildah --root "$work/root" --runroot "$work/runroot" "$@"; }
server=
finish() {
  [ -z "$server" ] || kill -9 "$server" 2>/dev/null || true
  buildah unmount --all >/dev/null
  rm -rf --one-file-system "$work"
}
trap finish EXIT

mkdir "$work/system" "$work/data"
tar --extract --file="$(.ci/base.sh trixie 3.13)" --directory="$work/system"
chroot "$work/system" python3 -m venv /usr/local  # The official image has Python and pip there, too.
cp /etc/ssl/certs/ca-certificates.crt "$work/system/etc/ssl/certs/"
cp -L /etc/resolv.conf /etc/hosts "$work/system/etc/"
container=$(buildah from scratch)
buildah add --quiet "$container" "$work/system" /
buildah commit --quiet "$container" "docker.io/library/$base"
buildah build --quiet --pull=never --network=host --file deploy/Dockerfile --tag blogapi .
image=$(buildah mount "$(buildah from --pull=never blogapi)")

# Like a container: its own mounts, a read-only root, and the user of the image. This replaces the shell.
inside() {
  # shellcheck disable=SC2016
  exec unshare --mount sh -c '
    image=$1 data=$2 && shift 2
    mount --bind "$image" "$image" && mount --bind "$data" "$image/data" && mount --rbind /dev "$image/dev" &&
      mount -t proc proc "$image/proc" && mount -t tmpfs tmpfs "$image/tmp" && mount -o remount,bind,ro "$image" &&
      exec env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/bin PORT="$PORT" chroot --userspec=1000:1000 "$image" \
        sh -c "cd /data && exec \"\$@\"" - "$@"' - "$image" "$work/data" "$@"
}
start() {
  inside gunicorn --config python:blogapi.server.gunicorn_conf & server=$!
  for _ in $(seq 300); do
    curl --silent --output /dev/null "http://127.0.0.1:$PORT/healthz" && return
    sleep 0.1
  done
  return 1
}
stop() {
  kill "$server"
  wait "$server" || true
  server=
}

chown 1000:1000 "$work/data"
PORT=$(python3 -c 'import socket; probe = socket.socket(); probe.bind(("127.0.0.1", 0)); print(probe.getsockname()[1])')
export PORT
start
key=$(inside blogapi keys create test)
curl --silent --fail --output /dev/null "http://127.0.0.1:$PORT/v1/posts" --header "Authorization: Bearer $key" \
  --json '{"title": "From a container", "content": "Text"}'
stop
start
curl --silent --fail "http://127.0.0.1:$PORT/v1/posts/1" --header "Authorization: Bearer $key" | grep -q Text
stop
echo "The container was built, and kept a post over a restart."
