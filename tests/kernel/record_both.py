#!/usr/bin/env python3
"""`syncline record --route dynamic-events`, with the events of the patch in the same buffer.

For `python -m tools.agreement`, which compares the two kinds of events. Needs a patched kernel.
"""

from pathlib import Path

from syncline.cli import main
from syncline.record import ring_buffer

PATCH = Path("/sys/kernel/tracing/events/wb_tracer")

ring_buffer.CALL_EVENTS += sorted(f"{PATCH.name}/{path.parent.name}" for path in PATCH.glob("*/id"))
main()
