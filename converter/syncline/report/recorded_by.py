"""What records the columns of requests. Generated from sql/columns.toml by `python -m tools.columns`."""

GROUPS: tuple[tuple[tuple[str, ...], tuple[str, ...], str, str, str], ...] = (
    (
        ("op", "syscall_ns"),
        ("ring-buffer", "dynamic-events", "bpftrace", "strace"),
        "entries of the sync syscalls; a sync by io_uring and a durable write have none, except a durable write in a log of strace",
        "the other requests have no call (io_uring, a durable write, a kernel thread), or the call is missing from the log",
        "for syncs that are calls (those of io_uring and durable writes are not)",
    ),
    (
        ("stack",),
        ("ring-buffer", "dynamic-events", "bpftrace"),
        "user stacks of the sync syscalls: bpftrace, which ring-buffer needs for them too; strace -k",
        "the other requests have no call, or a call without a stack",
        "for syncs that are calls (those of io_uring and durable writes are not)",
    ),
    (
        ("tid",),
        ("ring-buffer", "dynamic-events", "bpftrace", "strace"),
        "a log whose ids are thread ids (--pid-is)",
        "the other requests are from a log whose ids are process ids",
        "",
    ),
    (
        ("comm",),
        ("ring-buffer", "dynamic-events", "bpftrace"),
        "thread names; strace -f -Y",
        "the threads of the other requests have no name in the log",
        "",
    ),
    (
        ("pid", "process", "cgroup"),
        ("ring-buffer", "dynamic-events", "bpftrace"),
        "the processes of the threads, which `syncline record` saves next to the log",
        "the processes of the other requests had exited before `syncline record` looked them up",
        "",
    ),
    (
        ("path",),
        ("ring-buffer", "dynamic-events", "bpftrace", "strace"),
        "file paths; a sync of a whole file system has none, and bpftrace needs a kernel with BTF",
        "the other requests sync a whole file system, or have no path in the log",
        "for syncs of files (a whole file system has no path)",
    ),
    (
        ("container_path",),
        ("dynamic-events",),
        "paths in containers; a thread outside of a container has none",
        "the other requests are of threads outside of containers, or the path was not found",
        "for threads in containers",
    ),
    (
        ("start_ns", "datasync", "dev", "ino", "fs"),
        ("ring-buffer", "dynamic-events", "bpftrace"),
        "starts of the file system's sync function",
        "an event of the other requests is missing (see what was lost), or only their call was recorded, or their tracepoint lacks the field",
        "",
    ),
    (
        ("id",),
        ("ring-buffer", "bpftrace"),
        "ids of requests: on a patched kernel, or with bpftrace on a kernel with BTF",
        "an event of the other requests is missing (see what was lost), or they have no id",
        "",
    ),
    (
        ("folios", "ranges"),
        ("ring-buffer", "dynamic-events", "bpftrace"),
        "folios that are added to a bio: by dynamic events, on a patched kernel, or with bpftrace on a kernel with BTF",
        "an event of the other requests is missing (see what was lost), or they have no folios in the log",
        "",
    ),
    (
        ("bytes", "bios", "writeback_ns", "before_submit_ns", "after_complete_ns"),
        ("ring-buffer", "dynamic-events", "bpftrace"),
        "bios from submit to completion",
        "an event of the other requests is missing (see what was lost), or only their call was recorded",
        "",
    ),
    (
        ("dur_ns", "ret"),
        ("ring-buffer", "dynamic-events", "bpftrace", "strace"),
        "ends of requests",
        "an event of the other requests is missing (see what was lost)",
        "",
    ),
    (
        ("journal_ns", "flush_ns", "other_ns"),
        ("ring-buffer", "dynamic-events"),
        "waits for journal and flush: by dynamic events, or on a patched kernel, there not for btrfs; not for sync and syncfs on xfs",
        "the file system of the other requests does not record waits, or one end of a wait or a bio is missing",
        "not for sync and syncfs on xfs",
    ),
    (
        ("cpu_wait_ns",),
        ("ring-buffer", "dynamic-events"),
        "switches of the threads that sync (sched_switch, sched_waking)",
        "the threads of the other requests were not followed from the start of the request on, or a switch of them is missing",
        "",
    ),
)

# Null in a request without a bio.
ONLY_WITH_BIO = ("before_submit_ns", "after_complete_ns")
