#!/usr/bin/env bash
# Runs the wheel for arm64 on another machine: tests/arm64.sh [WHEEL]. By default it is the one that `make wheel-arm64` wrote to dist/.
# Debian's Python for arm64 is unpacked into a temporary folder and emulated, so nothing is installed. Needs qemu-user, apt and a network.
set -euo pipefail
cd "$(dirname "$0")/.."
BIN=${BIN:-$PWD/.venv/bin}
wheel=${1:-$(find dist -name 'syncline-*_aarch64.whl' 2>/dev/null | head -n 1)}
log=tests/data/thesis/small1.log
[ -n "$wheel" ] || { echo "there is no wheel for arm64 in dist/: make wheel-arm64"; exit 2; }
command -v qemu-aarch64 >/dev/null || { echo "qemu-aarch64 was not found: apt-get install qemu-user"; exit 2; }

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
mkdir -p "$made"/apt/{state/lists/partial,cache/archives/partial} "$made"/{debs,root,site}
touch "$made/apt/state/status"
apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root -o "Dir::State=$made/apt/state"
  -o "Dir::Cache=$made/apt/cache" -o "Dir::State::status=$made/apt/state/status")
"${apt[@]}" update
python=$(. /etc/os-release && case $VERSION_ID in 12) echo 3.11 ;; *) echo 3.13 ;; esac)
(cd "$made/debs" && "${apt[@]}" download "python$python-minimal" "libpython$python-minimal" "libpython$python-stdlib" libc6 zlib1g libexpat1 \
  libssl3 libffi8 libgcc-s1 libstdc++6 libbz2-1.0 liblzma5 libsqlite3-0 libuuid1)
for package in "$made"/debs/*.deb; do dpkg -x "$package" "$made/root"; done
"$BIN/pip" install -q --disable-pip-version-check --target "$made/site" --python-version "$python" --only-binary :all: \
  --platform linux_aarch64 --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 "$wheel"

# The loader is named, because qemu's own option for it changes the meaning of `/` for files that are written.
lib=$made/root/lib/aarch64-linux-gnu
emulated() {
  PYTHONPATH=$made/site PYTHONHOME=$made/root/usr qemu-aarch64 "$lib/ld-linux-aarch64.so.1" --library-path "$lib:$made/root/usr/lib/aarch64-linux-gnu" \
    "$made/root/usr/bin/python$python" -c 'from syncline.cli import main; main()' "$@"
}

failed=0
emulated convert -q "$log" -o "$made/arm64.csv"
"$BIN/syncline" convert -q "$log" -o "$made/here.csv"
cmp "$made/arm64.csv" "$made/here.csv" || failed=$((failed + 1))
emulated report "$log" files --format csv >"$made/arm64-files.csv"
"$BIN/syncline" report "$log" files --format csv >"$made/here-files.csv"
cmp "$made/arm64-files.csv" "$made/here-files.csv" || failed=$((failed + 1))
echo "arm64: $((2 - failed)) passed, $failed failed"
[ "$failed" = 0 ]
