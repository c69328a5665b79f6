#!/bin/sh
# fit.sh SCRIPT: prints the script with the parts switched on that this kernel has events for. To be run as root.
#   bpf/fit.sh bpf/stock-tracepoints.bt >/tmp/fitted.bt && bpftrace -q /tmp/fitted.bt 0 '' 0
set -eu
events=/sys/kernel/tracing/events
[ -d $events/block ] || events=/sys/kernel/debug/tracing/events
[ -d $events/block ] || { echo "fit.sh: no events in $events; tracefs must be mounted, and this needs root" >&2; exit 3; }
there=false
while IFS= read -r line; do
  case $line in
    '// if '*) event=${line#// if }; there=false; if [ -d "$events/${event%%:*}/${event#*:}" ]; then there=true; fi ;;
    '//~'*) if $there; then line=${line#//~}; line=${line# }; fi ;;
  esac
  printf '%s\n' "$line"
done <"${1:?which script?}"
