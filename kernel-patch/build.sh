#!/usr/bin/env bash
# Builds the patched kernel for the QEMU guest: unpacks Debian's source, applies the patches, configures, builds.
#
#   kernel-patch/build.sh [--series SERIES] [FOLDER]
#
# SERIES is the kernel that the patches are for: 6.12, the default, or 7.3. FOLDER is $SYNCLINE_KERNEL_DIR, else
# ~/.cache/syncline/kernel/SERIES. The last line on stdout is the path of the bzImage; all else goes to stderr and to
# FOLDER/build.log. An up-to-date kernel is not built again.
#   SYNCLINE_KERNEL_SOURCE   the tarball, instead of the package linux-source-SERIES
#   JOBS                     jobs of make, default 2
set -euo pipefail
shopt -s inherit_errexit

usage() {
  sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
}

say() {
  echo "build.sh: $*" >&2
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
series=6.12
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage && exit ;;
    --series=*) series=${1#*=} ;;
    --series)
      shift
      series=${1:-}
      [ $# -gt 0 ] || break
      ;;
    -*) usage >&2 && exit 2 ;;
    *) break ;;
  esac
  shift
done
if [ $# -gt 1 ]; then
  usage >&2
  exit 2
fi
if [[ ! $series =~ ^[0-9.]+$ ]] || [ ! -f "$here/$series/0000-cover-letter.patch" ]; then
  all=("$here"/*/0000-cover-letter.patch)
  all=("${all[@]%/*}")
  say "no patches for $series; --series takes one of: ${all[*]##*/}"
  exit 2
fi

folder=${1:-${SYNCLINE_KERNEL_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/syncline/kernel/$series}}
tarball=${SYNCLINE_KERNEL_SOURCE:-/usr/src/linux-source-$series.tar.xz}
jobs=${JOBS:-2}
# All patches except the cover letter, which is 0000.
patches=("$here/$series"/000[1-9]-*.patch "$here/$series"/00[1-9]?-*.patch)
fragment=$here/config/guest.config
packages=("linux-source-$series" gcc make bc flex bison libelf-dev libssl-dev dwarves cpio kmod xz-utils patch)

missing_packages() {
  local package
  # Not Debian: make reports what is missing.
  command -v dpkg-query >/dev/null || return 0
  for package in "${packages[@]}"; do
    [ -n "${SYNCLINE_KERNEL_SOURCE:-}" ] && [ "$package" = "linux-source-$series" ] && continue
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
  done
}

# Only newer releases of Debian and backports have newer kernel sources.
need_source() {
  apt-cache show --no-all-versions "linux-source-$series" >/dev/null 2>&1 && return
  say "apt has no linux-source-$series. On Debian 13, with trixie-backports in its sources:"
  say "  apt-get install -t trixie-backports linux-source-$series"
  say "Elsewhere take that package from a Debian mirror (pool/main/l/linux), unpack it, and name its tarball:"
  say "  dpkg-deb -x linux-source-${series}_*_all.deb /tmp/source"
  say "  SYNCLINE_KERNEL_SOURCE=/tmp/source/usr/src/linux-source-$series.tar.xz $0 --series $series"
  exit 1
}

mapfile -t missing < <(missing_packages)
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" != 0 ]; then
    [[ " ${missing[*]} " != *" linux-source-$series "* ]] || need_source
    say "missing packages; get them with: apt-get install ${missing[*]}"
    exit 1
  fi
  say "apt-get installs ${missing[*]} (you are root), which the build needs"
  apt=(apt-get -qq -o DPkg::Lock::Timeout=300)
  DEBIAN_FRONTEND=noninteractive "${apt[@]}" update >&2
  [[ " ${missing[*]} " != *" linux-source-$series "* ]] || need_source
  DEBIAN_FRONTEND=noninteractive "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >&2
fi
if [ ! -f "$tarball" ]; then
  say "no tarball $tarball"
  exit 1
fi

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
exec 9>"$folder/lock"
flock 9

# The version of the source is the package version, or a digest of the tarball if SYNCLINE_KERNEL_SOURCE names it.
if [ -n "${SYNCLINE_KERNEL_SOURCE:-}" ]; then
  version=$(sha256sum <"$tarball")
else
  version=$(dpkg-query -W -f '${Version}' "linux-source-$series")
fi
source_key=$({ echo "$version"; cat "${patches[@]}"; } | sha256sum | cut -c 1-16)
key=$({ echo "$source_key"; cat "$fragment" "$here/build.sh"; } | sha256sum | cut -c 1-16)

source=$folder/source
build=$folder/build
image=$build/arch/x86/boot/bzImage
if [ -f "$image" ] && [ "$(cat "$folder/built" 2>/dev/null)" = "$key" ]; then
  say "up to date"
  echo "$image"
  exit
fi

if [ "$(cat "$source/.syncline" 2>/dev/null)" != "$source_key" ]; then
  say "unpacking $tarball"
  rm -rf "$source" "$source.new"
  mkdir "$source.new"
  tar -xf "$tarball" -C "$source.new" --strip-components=1
  for patch in "${patches[@]}"; do
    say "applying $(basename "$patch")"
    patch -d "$source.new" -p1 --quiet --no-backup-if-mismatch <"$patch" >&2
  done
  echo "$source_key" >"$source.new/.syncline"
  mv "$source.new" "$source"
fi

log=$folder/build.log
mkdir -p "$build"
run() {
  "$@" >>"$log" 2>&1 9>&- || {
    say "failed: $*"
    tail -n 25 "$log" >&2
    exit 1
  }
}
: >"$log"
export KBUILD_BUILD_USER=syncline KBUILD_BUILD_HOST=syncline
say "configuring"
run make -C "$source" O="$build" tinyconfig
run "$source/scripts/kconfig/merge_config.sh" -m -O "$build" "$build/.config" "$fragment"
run make -C "$source" O="$build" olddefconfig
# olddefconfig silently drops an option with unmet dependencies. Report it here, before the guest runs without it.
while read -r option; do
  grep -qxF "$option" "$build/.config" || say "not taken: $option"
done < <(grep '^CONFIG_' "$fragment")

say "building with -j$jobs; a first build takes 15 to 60 minutes on two cores, see $log"
run make -C "$source" O="$build" -j"$jobs" bzImage
echo "$key" >"$folder/built"
echo "$image"
