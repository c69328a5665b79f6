#!/bin/sh
# fit.sh SCRIPT: prints the script with the probes enabled that this kernel has events for. Run it as root.
#   bpf/fit.sh bpf/stock-tracepoints.bt >fitted.bt && bpftrace -q fitted.bt 0 '' 0
set -eu
events=/sys/kernel/tracing/events
[ -d $events/block ] || events=/sys/kernel/debug/tracing/events
[ -d $events/block ] || { echo "fit.sh: no events in $events: mount tracefs, and run this as root" >&2; exit 3; }
enabled=false
while IFS= read -r line; do
  case $line in
    '// if '*) event=${line#// if }; enabled=false; if [ -d "$events/${event%%:*}/${event#*:}" ]; then enabled=true; fi ;;
    '//~'*) if $enabled; then line=${line#//~}; line=${line# }; fi ;;
  esac
  printf '%s\n' "$line"
done <"${1:?usage: fit.sh SCRIPT}"
