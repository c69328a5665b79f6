# shellcheck shell=bash
# Functions for jobs and for the init of the guest: file systems and devices by their names in the two tables.

KERNEL_TESTS=${KERNEL_TESTS:-/project/tests/kernel}

# table_row TABLE NAME: prints the columns of a row, one per line; `-` is printed as empty.
table_row() {
  awk -F '\t' -v name="$2" '$1 == name { for (i = 2; i <= NF; i++) print ($i == "-" ? "" : $i); found = 1 }
    END { exit !found }' "$KERNEL_TESTS/$1" || {
    echo "no $2 in $1" >&2
    return 1
  }
}

# make_fs SETUP DEVICE DIR [MKFS_OPTS [MOUNT_OPTS]]: creates a file system and mounts it at DIR, where it unmounts another one.
make_fs() {
  local setup=$1 device=$2 dir=$3 more_mkfs=${4:-} more_mount=${5:-} row
  local -a columns command options
  row=$(table_row filesystems.tsv "$setup") || return 1
  mapfile -t columns <<<"$row"
  local type=${columns[0]} mkfs=${columns[1]:-} mount=${columns[2]:-}
  if mountpoint -q "$dir"; then umount "$dir"; fi
  modprobe -q "$type" || true
  case $type in
    ext4) command=(mkfs.ext4 -q -F) ;;
    *) command=("mkfs.$type" -f) ;;
  esac
  read -ra options <<<"$mkfs $more_mkfs"
  "${command[@]}" "${options[@]}" "$device" >/dev/null
  mkdir -p "$dir"
  mount=$mount${more_mount:+${mount:+,}$more_mount}
  mount -t "$type" ${mount:+-o "$mount"} "$device" "$dir"
}

# make_device NAME DISK: creates a device of devices.tsv and prints its path.
make_device() {
  local name=$1 disk=$2 row kind size
  local -a columns numbers
  row=$(table_row devices.tsv "$name") || return 1
  mapfile -t columns <<<"$row"
  kind=${columns[0]}
  read -ra numbers <<<"${columns[1]:-}"
  case $kind in
    plain) echo "$disk" ;;
    delay)
      modprobe -q dm-delay || true
      size=$(blockdev --getsz "$disk")
      dmsetup create --noudevsync "$name" --table \
        "0 $size delay $disk 0 ${numbers[0]} $disk 0 ${numbers[1]} $disk 0 ${numbers[2]}" >&2
      dmsetup mknodes "$name" >&2
      # Before the mount, which takes it over.
      if [ -n "${numbers[3]:-}" ]; then echo "${numbers[3]}" >"/sys/dev/block/$(stat -L -c '%Hr:%Lr' "/dev/mapper/$name")/queue/stable_writes"; fi
      echo "/dev/mapper/$name"
      ;;
    flakey)
      modprobe -q dm-flakey || true
      size=$(blockdev --getsz "$disk")
      dmsetup create --noudevsync "$name" --table "0 $size linear $disk 0" >&2
      dmsetup mknodes "$name" >&2
      echo "/dev/mapper/$name"
      ;;
    busy)
      # Its driver does not take every nth command (SDEBUG_OPT_HOST_BUSY), so the block layer issues it again.
      # Nothing else loads the driver of SCSI disks: the guest has no udev.
      modprobe sd_mod >&2
      modprobe scsi_debug dev_size_mb=256 delay=0 every_nth="${numbers[0]}" opts=0x8000 >&2
      wait_until 20 compgen -G '/sys/bus/pseudo/drivers/scsi_debug/adapter0/host*/target*/*:*/block/*' >/dev/null
      columns=(/sys/bus/pseudo/drivers/scsi_debug/adapter0/host*/target*/*:*/block/*)
      echo "/dev/${columns[0]##*/}"
      ;;
    null)
      modprobe -q null_blk nr_devices=0 || true
      mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
      local folder=/sys/kernel/config/nullb/$name
      mkdir "$folder"
      # Only what is written takes memory.
      echo "${numbers[5]:-256}" >"$folder/size"
      echo 1 >"$folder/memory_backed"
      # 2: completion by a timer, so that the time of a request can be set.
      echo 2 >"$folder/irqmode"
      echo "$((numbers[0] * 1000))" >"$folder/completion_nsec"
      echo "${numbers[1]}" >"$folder/cache_size"
      if [ -n "${numbers[2]:-}" ]; then echo "${numbers[2]}" >"$folder/hw_queue_depth"; fi
      # Older kernels (6.1) have no such setting.
      if [ -n "${numbers[3]:-}" ] && [ -e "$folder/fua" ]; then echo "${numbers[3]}" >"$folder/fua"; fi
      if [ "${numbers[6]:-0}" != 0 ]; then echo "${numbers[6]}" >"$folder/mbps"; fi
      echo 1 >"$folder/power"
      local path=/dev/$name
      [ -b "$path" ] || path=/dev/nullb$(cat "$folder/index")
      if [ "${numbers[4]:-0}" != 0 ]; then echo "${numbers[4]}" >"/sys/block/${path#/dev/}/queue/max_sectors_kb"; fi
      echo "$path"
      ;;
    *)
      echo "devices.tsv: $name has an unknown kind, $kind" >&2
      return 1
      ;;
  esac
}

drop_device() {
  local name=$1
  if dmsetup info "$name" >/dev/null 2>&1; then dmsetup remove --noudevsync "$name"; fi
  if [ -d "/sys/kernel/config/nullb/$name" ]; then
    echo 0 >"/sys/kernel/config/nullb/$name/power"
    rmdir "/sys/kernel/config/nullb/$name"
  fi
  if [[ $name == busy* ]]; then modprobe -r scsi_debug; fi
}

# mount_case SETUP DEVICE: mounts an empty file system at $DATA. A second call with the same arguments keeps it.
MOUNTED=''
mount_case() {
  local device disk=${DISK:?}
  [ "$MOUNTED" = "$1 $2" ] && return
  if mountpoint -q "$DATA"; then umount "$DATA"; fi
  if [ -n "$MOUNTED" ]; then drop_device "${MOUNTED#* }"; fi
  MOUNTED=''
  # Otherwise signatures of the previous file system could be detected.
  wipefs -q -a "$disk"
  device=$(make_device "$2" "$disk") || return 1
  make_fs "$1" "$device" "$DATA" || {
    drop_device "$2"
    return 1
  }
  MOUNTED="$1 $2"
}

# wait_until SECONDS COMMAND...: waits until the command succeeds. Fails after SECONDS: without a limit, a job would run until the guest's.
wait_until() {
  local until=$((SECONDS + $1))
  shift
  until "$@"; do
    if [ "$SECONDS" -ge "$until" ]; then
      echo "waited in vain: $*" >&2
      return 1
    fi
    sleep 0.5
  done
}

has_exited() { [ ! -e "/proc/$1" ] || grep -q '^State:.*zombie' "/proc/$1/status" 2>/dev/null; }

# wait_for_exit PID [SECONDS]: waits for a process of this shell, and kills it after SECONDS.
wait_for_exit() {
  wait_until "${2:-300}" has_exited "$1" || kill -KILL "$1" || true
  wait "$1" || true
}

# select_cases [PATTERN...]: prints the rows of cases.tsv whose name, file system, device or workload matches a pattern; all without one.
# Fails if a pattern matches no row.
select_cases() {
  local name setup device workload options pattern chosen
  local -A unused=()
  [ $# -gt 0 ] || set -- '*'
  for pattern in "$@"; do unused[$pattern]=1; done
  while IFS=$'\t' read -r name setup device workload options; do
    [[ $name == \#* ]] && continue
    chosen=''
    for pattern in "$@"; do
      # shellcheck disable=SC2053  # this is a pattern
      if [[ $name == $pattern || $setup == $pattern || $device == $pattern || $workload == $pattern ]]; then
        chosen=1
        unset "unused[$pattern]"
      fi
    done
    if [ -n "$chosen" ]; then printf '%s\t%s\t%s\t%s\t%s\n' "$name" "$setup" "$device" "$workload" "${options/#-/}"; fi
  done <"$KERNEL_TESTS/cases.tsv"
  if [ ${#unused[@]} != 0 ]; then
    echo "cases.tsv: no row matches: ${!unused[*]}" >&2
    return 1
  fi
}

# sync_event SETUP: prints the trace events of the sync functions of a file system.
sync_event() {
  case $1 in
    ext4*) echo ext4/ext4_sync_file_enter ;;
    xfs*) echo xfs/xfs_file_fsync xfs/xfs_dir_fsync ;;
    btrfs*) echo btrfs/btrfs_sync_file ;;
    f2fs*) echo f2fs/f2fs_sync_file_enter ;;
    *) return 1 ;;
  esac
}
