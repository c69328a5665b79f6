"""Kinds of events, by the names that tracers give them."""

from __future__ import annotations

import re

CALLS = "fsync|fdatasync|msync|sync|syncfs|sync_file_range"
WAITS = "commit_wait|fc_wait|wait_commit|fc_commit|xlog_force|btrfs_log|btrfs_commit|f2fs_cp"

# The first pattern that is all of a name decides. Requests of the block layer without data are flushes, see `kind_of`.
PATTERNS = [
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("call entry", rf"(sys_enter_)?({CALLS})"),
        ("call exit", rf"sys_exit_({CALLS})|({CALLS})_returns"),
        (
            "start",
            r"start|sync_start|sync_fs_start|(fsync|range|syncfs)_enter|sync_inodes|sync_super"
            r"|(ext4|f2fs)_sync_file_enter|xfs_file_fsync|btrfs_sync_file",
        ),
        (
            "end",
            r"exit|sync_end|sync_fs_end|(fsync|range|syncfs)_exit|sync_inodes_end|sync_super_end"
            r"|(ext4|f2fs)_sync_file_exit",
        ),
        ("folio", r"bio_add_folio|bio_add_page"),
        ("submit", r"bio_submit|bio"),
        ("completion", r"bio_complete|bio_end|block_bio_complete"),
        ("block submit", r"block_bio_queue|Q"),
        ("issue", r"block_rq_issue|D"),
        ("block completion", r"block_rq_complete|C"),
        ("remap", r"block_bio_remap|A"),
        ("merge", r"[MFGIX]|block_rq_insert"),
        ("flush begin", r"flush_start|flush|f2fs_flush"),
        ("flush end", r"flush_end|f2fs_flush_end"),
        ("wait begin", rf"(commit_wait|fc_wait|fc)_start|{WAITS}"),
        ("wait end", rf"(commit_wait|fc_wait|fc)_end|({WAITS})_end"),
        ("folio wait begin", r"filemap_wait|folio_wait"),
        ("folio wait end", r"filemap_wait_end|folio_wait_end"),
        ("commit begin", r"jbd2_start_commit|commit_start"),
        ("commit end", r"jbd2_end_commit|commit_end"),
        ("commit step", r"jbd2_commit_(locking|flushing|logging)"),
        ("commit request", r"commit_request|commit_timer"),
        ("switch", r"sched_switch"),
        ("wakeup", r"sched_waking"),
        ("lock begin", r"contention_begin"),
        ("lock end", r"contention_end"),
        ("pass", r"wb_start|wb_end|writeback_work(_end)?|writeback_start|writeback_written"),
        ("open", r"openat?|creat"),
        ("close", r"close"),
        ("write", r"p?writev?2?|pwrite64"),
        ("note", r"note"),
        ("process", r"v?fork|clone3?|execve"),
        ("unfinished", r"unfinished"),
        ("resumed", r"resumed"),
    )
]

# Kinds that a recorder that records one of them lacks together.
GROUPS = {
    "calls": ("call entry", "call exit"),
    "requests": ("start", "end"),
    "bios": ("folio", "submit", "completion"),
    "block layer": ("block submit", "issue", "block completion", "merge", "block flush", "read"),
    "block bounds": ("block submit", "block completion"),
    "flushes": ("flush begin", "flush end", "block flush"),
    "waits": ("wait begin", "wait end"),
    "all waits": ("wait begin", "wait end", "flush begin", "flush end"),
    "folio waits": ("folio wait begin", "folio wait end"),
    "commits": ("commit begin", "commit end", "commit step"),
    "scheduler": ("switch", "wakeup"),
    "completions": ("completion", "block completion"),
    "submits": ("submit", "block submit"),
}


def kind_of(name: str, flags: str = "") -> str:
    """The kind of an event; `flags` are those of a request of the block layer (`WS`, `FF`)."""
    for kind, pattern in PATTERNS:
        if pattern.fullmatch(name):
            if kind in ("block submit", "issue", "block completion", "merge", "remap"):
                if flags.lstrip("F").startswith("R"):
                    return "read"
                if "W" not in flags:
                    return "block flush"
            return kind
    return "other"
