#!/bin/sh
# fit.sh SCRIPT: prints the script without the parts that this kernel has no events for. To be run as root.
#   bpf/fit.sh bpf/stock-tracepoints.bt >/tmp/fitted.bt && bpftrace -q /tmp/fitted.bt 0 '' 0
set -eu
events=/sys/kernel/tracing/events
[ -d $events ] || events=/sys/kernel/debug/tracing/events
[ -d $events/block ] || { echo "fit.sh: no events in $events; tracefs must be mounted, and this needs root" >&2; exit 3; }
out=true
while IFS= read -r line; do
  case $line in
    '// if '*) event=${line#// if }; [ -d "$events/${event%%:*}/${event#*:}" ] || out=false ;;
    '// fi') $out && echo "$line"; out=true; continue ;;
  esac
  if $out; then printf '%s\n' "$line"; fi
done <"${1:?which script?}"
