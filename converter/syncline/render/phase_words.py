"""What each phase is, in half a sentence for a reader who does not know its name."""

from __future__ import annotations

from collections.abc import Collection

from syncline.report.answer import RESIDUE, UNKNOWN

__all__ = ["hidden_after_completion", "meaning"]

_WORDS = {
    "before submit": "the thread had submitted nothing yet: it looked for dirty data, or waited to do so",
    "submit": "the thread filled and submitted further bios",
    "queue": "the block layer had the bio, and the device had not got it yet",
    "device": "the device worked on the bio that the sync waited for",
    "writeback": "the data were on their way to the device; the recording does not say when it got them",
    "completion": "the bios were complete, and the file system had not ended the writeback of their pages yet",
    "earlier writeback": "somebody else was writing data of the file already",
    "earlier commit": "the journal was busy with the commit before",
    "commit start": "the commit was asked for, and the journal had not begun it",
    "commit locking": "the commit waited for changes of metadata that were under way",
    "commit flushing": "the commit wrote data of files",
    "commit logging": "the commit wrote the journal",
    "commit": "the thread made the commit itself",
    "commit wait": "another thread made the commit",
    "fast commit": "the thread wrote a fast commit itself",
    "fast commit wait": "another thread wrote the fast commit",
    "flush": "the device emptied its cache",
    "metadata wait": "a block of metadata was read or written",
    "lock wait": "somebody else held a lock of the kernel",
    "cpu wait": "the thread could run, and no CPU ran it",
    "after completion": "the bios of the sync were complete, and it had not returned",
    RESIDUE: "nothing that is recorded explains it",
    UNKNOWN: "the call outside of the file system, and syncs of which an event is missing",
}
# A recording that cannot show these as phases of their own has them in `after completion`.
_HIDDEN = (("the commit of the file system", "commit wait"), ("the cache flush", "flush"))


def hidden_after_completion(seen: Collection[str]) -> str:
    """Returns what is in `after completion` because the recording cannot show it apart; empty if it can.

    Args:
        seen: the phases that the recording can show.
    """
    return " and ".join(what for what, name in _HIDDEN if name not in seen)


def meaning(phase: str, seen: Collection[str]) -> str:
    """Returns what a phase is. A phase that is not known has no words.

    Args:
        seen: the phases that the recording can show.
    """
    if phase == "after completion" and (hidden := hidden_after_completion(seen)):
        return f"{hidden}, which this recording does not separate"
    return _WORDS.get(phase, "")
