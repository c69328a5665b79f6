"""Which events occur in recorded pages: a look at some of them, without decoding their fields."""

from __future__ import annotations

import re
import struct
from itertools import islice

from syncline.record import ring_pages
from syncline.record.ring_buffer import RingBuffer

# Number of events that are looked at in all pages together.
_LOOK_AT = 200_000


def names(ring: RingBuffer) -> set[str]:
    """Returns the names of the events in the first pages of each CPU, all pages of a short recording."""
    wanted = {}
    for event in ring.main.events:
        text = (ring.instance.folder / "events" / event / "format").read_text()
        if found := re.search(r"^ID: (\d+)$", text, re.MULTILINE):
            wanted[int(found[1])] = event.rpartition("/")[2]
    seen: set[int] = set()
    each = _LOOK_AT // max(len(ring.main.pages), 1)
    for file in ring.main.pages:
        for _, data in islice(ring_pages.events(file, ring.page_bytes), each):
            seen.add(struct.unpack_from("=H", data)[0])
            if len(seen) == len(wanted):
                break
    return {wanted[event_id] for event_id in seen if event_id in wanted}
