#!/usr/bin/env bash
# record-real.sh: records sqlite3, git, dpkg and LMDB (`pip install lmdb` for PYTHON) as they come with Debian 12, into
# tests/data/check/NAME.strace.gz. Lines of libraries and of /proc are left out.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=/tmp/syncline-check

recorded() {
  local name=$1
  shift
  rm -f "$work.log"
  strace -f -y -T -ttt -s 0 -e trace=%file,%desc,%process,%network,sync -o "$work.log" "$@" >/dev/null
  grep -v -E '(/lib/|/usr/lib/|/usr/share/|/etc/ld|/proc/|/\.?pyenv/|\.pyenv|/dev/).*' "$work.log" |
    grep -v -E ' (read|pread64|readlink|access|faccessat2|f?stat|newfstatat|lseek|mprotect|ioctl|getdents64|lstat)\(' |
    gzip -9n >"$here/../$name.strace.gz"
}

fresh() {
  rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit
}

many='CREATE TABLE t(a); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); UPDATE t SET a = a + 1;'
for mode in delete truncate wal; do
  for sync in full off; do
    fresh
    case $mode in delete) name=sqlite-$sync ;; *) name=sqlite-$mode-$sync ;; esac
    recorded "$name" sqlite3 "$work/app.db" "PRAGMA journal_mode=$mode; PRAGMA synchronous=$sync; $many"
  done
done
fresh
recorded sqlite-wal-normal sqlite3 "$work/app.db" "PRAGMA journal_mode=wal; PRAGMA synchronous=normal; $many PRAGMA wal_checkpoint(TRUNCATE); UPDATE t SET a = a + 1;"

fresh
git init -q "$work/repo" && cd "$work/repo" || exit
git config user.name x && git config user.email x@example.org
echo one >file && git add file
git config core.fsync all
recorded git-fsync-all git commit -q -m one
echo two >file && git add file
git config core.fsync none
recorded git-fsync-none git commit -q -m two

if [ -n "${PYTHON:-}" ]; then
  for flags in sync=True sync=False; do
    fresh
    case $flags in sync=True) name=lmdb-right ;; *) name=lmdb-nosync ;; esac
    recorded "$name" "$PYTHON" -c "
import lmdb
env = lmdb.open('$work/db', $flags)
for number in range(3):
    with env.begin(write=True) as txn:
        txn.put(b'key%d' % number, b'value')
env.close()"
  done
fi

fresh
mkdir -p "$work"/pkg/DEBIAN "$work"/pkg/opt/app "$work"/admin/{info,updates,triggers} "$work"/root
printf 'Package: app\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n' >"$work/pkg/DEBIAN/control"
echo data >"$work/pkg/opt/app/data"
touch "$work/admin/status" "$work/admin/available"
dpkg-deb -b "$work/pkg" "$work/app.deb" >/dev/null
recorded dpkg dpkg --root="$work/root" --admindir="$work/admin" --force-not-root --log=/dev/null -i "$work/app.deb"
# PostgreSQL refuses to run as root. Of its calls, those of two folders are kept: the checkpoint of replication origins, which durable_rename
# replaces, and the statistics, which are renamed without a sync on purpose.
bin=/usr/lib/postgresql/15/bin
if [ -x "$bin/postgres" ]; then
  fresh && mkdir pg && chown postgres . pg
  as() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
  as "$bin/initdb" -D "$work/pg/data" -N --no-locale -A trust >/dev/null
  for fsync in on off; do
    printf 'CREATE TABLE t(a int);\nINSERT INTO t VALUES (1);\nCHECKPOINT;\n' |
      as strace -f --seccomp-bpf -y -T -ttt -s 0 -e trace=%file,%desc,%process,sync -o "$work/log" \
        "$bin/postgres" --single -c fsync=$fsync -D "$work/pg/data" template1 >/dev/null
    grep -E 'execve|chdir|pg_logical|pg_stat|exit' "$work/log" | grep -v -E '/lib/|/usr/share/|getdents|newfstatat|read\(' |
      gzip -9n >"$here/../postgres-fsync-$fsync.strace.gz"
  done
fi
rm -rf "$work" "$work.log"
