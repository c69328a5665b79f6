"""The kinds of texts that people have of a slow sync and that hold no event: the signs of each, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass

from . import stacks

__all__ = ["CALLS", "KINDS", "PRINT", "RECORD", "RECORD_BESIDE", "Kind"]

RECORD = "sudo syncline record --for 30s --and-report"
# Each line of the log is then a mark at its time in the recording.
RECORD_BESIDE = "sudo syncline record --for 30s -o run && syncline report run marks --marks LOG"
PRINT = "babeltrace2 TRACE >FILE"
CALLS = "sudo strace -f -ttt -T -yy -p PID -o FILE"


@dataclass(frozen=True)
class Kind:
    """One kind of text.

    `what`: "it is WHAT". `answers`: "it says ANSWERS". `lacks`: "but not LACKS". `record`: the command that records what is missing.
    `signs`: patterns for a part of a line, one of which is enough. `looks_like_log`: its texts may begin like those of a format that Syncline
    reads.
    """

    what: str
    answers: str
    lacks: str
    record: str
    signs: tuple[str, ...]
    looks_like_log: bool = False


_STACKS = (
    Kind(
        "a stack of a task, by the kernel's log or /proc/PID/stack",
        "in which function each task waited at one moment",
        "since when its sync ran, or how long it took in that function",
        RECORD,
        stacks.SIGNS,
    ),
    Kind(
        "a list of processes by ps, with the function in which each waits",
        "in which function of the kernel each process waited at one moment",
        "how it came there, or how long its sync took",
        RECORD,
        (
            r"\bPID\s.*\bWCHAN\b",
            r"^\s*\d+\s+D[<NLsl+]*\s+[a-z_]\w{3,}\s+\[?[A-Za-z]",
        ),
    ),
    Kind(
        "a list of the stacks of a program's threads",
        "in which function of the program each thread was at one moment",
        "since when a sync ran, or what it waited for in the kernel",
        RECORD,
        (
            r"^\s*#\d+\s+(?:0x[0-9a-f]+ in \w|\w\S* \(.*\) (?:at|from) \S)",
            r"\bgoroutine \d+ \[\w",
            r'^".*" #\d+.* prio=\d+ ',
        ),
    ),
    Kind(
        "the kernel's log of a slow checkpoint of f2fs",
        "how long a checkpoint blocked, and in which of its steps",
        "whose syncs waited for it, or which requests of the device it waited for",
        RECORD,
        (r"\bF2FS-fs \(.*\): (?:checkpoint was blocked|blocked on checkpoint) for \d+ ms",),
    ),
    Kind(
        "the kernel's log of a device that fails or does not answer",
        "which device failed or did not answer a command, and when",
        "whose syncs waited for it, or how long they took",
        RECORD,
        (
            r"\bnvme\d+: I/O (?:tag )?\d+\b.*\b(?:timeout|QID)\b",
            r"\bfailed command: (?:FLUSH|WRITE|READ)",
            r"\b(?:blk_update_request|print_req_error): .*error",
            r"\b[IU]/O error, dev \w+, sector \d+",
        ),
    ),
)

_CALLS_ADDED_UP = (
    Kind(
        "the summary of perf trace -s",
        "how often each task made each call, and the shortest, mean and longest time of it",
        "which file a slow fsync was for, or what it waited for",
        RECORD,
        (r"^\s*Summary of events:\s*$", r"^\s*syscall\s+calls\s+(?:errors\s+)?total\s+min\s+avg"),
    ),
    Kind(
        "the summary of strace -c, which adds the calls up",
        "how often each call was made, and its time in total",
        "how long a single fsync took, or of which file",
        CALLS,
        (r"^% time\s+seconds\s+usecs/call\s+calls\s",),
    ),
)

_MACHINE = (
    Kind(
        "the output of zpool iostat",
        "how many bytes each pool of ZFS read and wrote, and with `-l` the mean latency",
        "which requests an fsync waited for, or how long a flush of the device took",
        RECORD,
        (r"^\s*(?:pool|capacity)\s+(?:alloc|operations)\s+",),
    ),
    Kind(
        "the output of iostat",
        "how busy each device was, and its mean latency, over each interval",
        "which of these requests an fsync waited for, or who else used the device",
        RECORD,
        (r"^Device:?\s+(?:\S+\s+)*(?:r/s|tps)(?:\s|$)", r"^avg-cpu:\s+%user"),
    ),
    Kind(
        "the output of iotop",
        "which threads read and wrote how much in an interval",
        "how long an fsync took, or what it waited for",
        RECORD,
        (
            r"^\s*(?:Total|Actual|Current) DISK READ\s*:",
            r"^\s*(?:TIME\s+)?[TP]ID\s+PRIO\s+USER\s+DISK READ",
        ),
    ),
    Kind(
        "the output of vmstat",
        "how much the machine read, wrote and waited for devices in an interval",
        "which thread waited, or whether an fsync did",
        RECORD,
        (r"^procs\s+-+memory-+", r"^\s*r\s+b\s+swpd\s+free\s"),
    ),
    Kind(
        "the output of pidstat",
        "how much each process read and wrote, or computed, in an interval",
        "how long an fsync took, or what it waited for",
        RECORD,
        (r"\s(?:TGID|PID)\s.*(?:\bkB_wr/s|%usr\s+%system|\bcswch/s)",),
    ),
    Kind(
        "the output of dstat, sar or atop",
        "how much the machine and its devices did in an interval",
        "which thread waited, or whether an fsync did",
        RECORD,
        (
            r"^-+(?:total-(?:cpu-)?usage|dsk/\S+|system|load-avg|procs)-+ ",
            r"^\S+(?: [AP]M)?\s+(?:DEV\s+tps|CPU\s+%user)\s",
            r"^(?:ATOP - |(?:PRC|CPL|DSK|LVM|MDD|PAG) \|)",
        ),
    ),
    Kind(
        "the output of top",
        "how much CPU each process took, and how much the CPUs waited for devices",
        "which thread waited for a device, or how long an fsync took",
        RECORD,
        (r"^%?Cpu\d*(?:\(s\))?\s*:.*\bwa\b", r"^top - \d\d:\d\d:\d\d up "),
    ),
    Kind(
        "a part of /proc/meminfo, /proc/diskstats or /proc/pressure",
        "how much was dirty or under way at one moment, or since the machine started",
        "which fsync waited for it, or how long it took",
        RECORD,
        (
            r"^\s*(?:Dirty|Writeback):\s+\d+ kB\s*$",
            r"^\s*\d+\s+\d+ (?:sd[a-z]+|nvme\d\S*|vd[a-z]+|xvd[a-z]+|dm-|md|mmcblk\d+)\w*(?: \d+){11,}\s*$",
            r"^(?:some|full) avg10=[\d.]+ avg60=",
        ),
    ),
    Kind(
        "the statistics of an NFS mount (nfsiostat, mountstats)",
        "how many calls of each kind went to the server, and their mean times",
        "which fsync waited for which of them, or how long it took",
        RECORD,
        (
            r"^\s*(?:COMMIT|WRITE):\s+\d+ \d+ \d+ \d+ ",
            r"^\s*ops/s\s+(?:rpc bklog|kB/s\s+kB/op)",
            r"^\s*device \S+ mounted on \S+ with fstype nfs",
        ),
    ),
    Kind(
        "ZFS' list of transaction groups (/proc/spl/kstat/zfs/POOL/txgs)",
        "how long each transaction group was open, waited and synced, and how much it wrote",
        "which fsync waited for it, or what the intent log took",
        RECORD,
        (r"^\s*txg\s+birth\s+state\s+ndirty\b",),
    ),
)

_BENCHMARKS = (
    Kind(
        "the result of fio",
        "the distribution of the latencies of its own writes and syncs",
        "what they waited for, or how your program syncs",
        "sudo syncline record --and-report -- fio JOB",
        (
            r"^\s*fsync/fdatasync/sync_file_range:",
            r"^\S.*: \(groupid=\d+, jobs=\d+\): err=",
            r"^\S.*: \(g=\d+\): rw=\w+, bs=",
            r'^\s*\{?\s*"fio version"\s*:',
        ),
    ),
    Kind(
        "the result of pg_test_fsync",
        "how many syncs each method of PostgreSQL's WAL reaches in a second on an idle file",
        "what a sync waits for, or how long those of your server take",
        "sudo syncline record --and-report -- pg_test_fsync -f FILE",
        (
            r"\bCompare (?:file sync methods|open_sync with)",
            r"^\s*\w[\w ]*\s+[\d.,]+ ops/sec(?:\s+\d+ usecs/op)?\s*$",
        ),
    ),
    Kind(
        "the result of sysbench",
        "how many writes and syncs, or transactions, it reached in a second, and their latency",
        "what a single sync waited for, or how your program syncs",
        "sudo syncline record --and-report -- sysbench ARGUMENTS run",
        (r"^\W*sysbench \d+\.\d+\.\d+\b", r"\bfsyncs(?:/s)?:\s+[\d.]+(?:/s)?"),
    ),
    Kind(
        "the result of ioping",
        "how long each of its own requests took",
        "what they waited for, or how your program syncs",
        "sudo syncline record --and-report -- ioping ARGUMENTS",
        (r"\brequest=\d+ time=[\d.,]+ [mun]?s\b",),
    ),
    Kind(
        "the result of dd",
        "how long its writes took together, and the mean rate",
        "how long a single sync took, or what it waited for",
        "sudo syncline record --and-report -- dd ARGUMENTS",
        (r"\d+ bytes (?:\(.+\) )?copied, [\d.,]+(?:e-\d+)? s, [\d.,]+ [kMG]?B/s",),
    ),
    Kind(
        "the result of pgbench",
        "how many transactions it reached in a second, and their mean latency",
        "how long a single commit took, or what its sync waited for",
        "sudo syncline record --for 30s --and-report",
        (r"^(?:latency average|initial connection time) = [\d.,]+ ms", r"^tps = [\d.,]+ \("),
    ),
)

_DATABASES = (
    Kind(
        "a table of PostgreSQL's pg_stat_wal or pg_stat_io",
        "how often the server synced its WAL or its files, and the time in total",
        "how long a single sync took, or what it waited for",
        RECORD,
        (r"^\s*(?:stats_reset\s*\|)?.*\bwal_(?:records|sync|sync_time)\s*\|", r"\|\s*fsync_time\b"),
    ),
    Kind(
        "a table of PostgreSQL's pg_stat_activity",
        "what each session waited for at one moment",
        "how long it waited, or what the sync itself waited for",
        RECORD,
        (
            r"\bwait_event(?:_type)?\s*\|",
            r"\|\s*(?:WALSync|WalSync|DataFileSync|WALWrite)\b",
        ),
    ),
    Kind(
        "PostgreSQL's log of checkpoints or slow statements",
        "how many files a checkpoint synced, with the longest, mean and total time, or how long a COMMIT took",
        "which file was slow, or what its sync waited for",
        RECORD_BESIDE,
        (
            r"\b(?:checkpoint|restartpoint) complete: wrote \d+ ",
            r"\bLOG:\s+duration: [\d.]+ ms  (?:statement|execute|parse|bind|fastpath)\b",
        ),
    ),
    Kind(
        "a log of InnoDB's page cleaner",
        "when writing a batch of pages took longer than a second, and how long",
        "which sync or request of the device was slow, or why",
        RECORD_BESIDE,
        (r"\bpage_cleaner: \d+ms intended loop took \d+ms",),
    ),
    Kind(
        "the status of InnoDB",
        "which threads waited for which lock, and how many syncs there were in total",
        "how long a single sync took, or what it waited for",
        RECORD,
        (
            r"\bINNODB MONITOR OUTPUT\b",
            r"\bhas waited at \S+ line \d+ for [\d.]+ seconds the semaphore",
            r"^\s*Pending flushes \(fsync\) log:",
            r"\bOS file writes, \d+ OS fsyncs",
        ),
    ),
    Kind(
        "a table of MySQL's performance_schema of files",
        "how often each file was synced, and the time in total",
        "how long a single sync took, or what it waited for",
        RECORD,
        (r"\bwait/io/file/\w+/",),
    ),
    Kind(
        "a log of slow operations by MongoDB",
        "which operation took long, or how far a checkpoint came, and when",
        "whether it waited for a sync, or what that sync waited for",
        RECORD_BESIDE,
        (
            r'"msg":"(?:Slow query|serverStatus was very slow)"',
            r"\bserverStatus was very slow: \{",
            r"\bWT_VERB_CHECKPOINT_PROGRESS\b",
        ),
    ),
    Kind(
        "etcd's log of slow syncs and requests",
        "when a sync of the WAL or a request took longer than etcd expects, and how long",
        "how long the other syncs took, or what a slow one waited for",
        RECORD_BESIDE,
        (
            r"\bslow fdatasync\b.*\btook\b",
            r"\bsync duration of \S+, expected less than ",
            r'"apply request took too long"',
            r"\betcdserver: .*\btook too long \([\d.]+\w*s\) to execute",
            r"\bfailed to send out heartbeat on time\b",
        ),
    ),
    Kind(
        "a program's histogram of syncs for Prometheus",
        "how many syncs or commits took at most how long since the program started",
        "when a single one was slow, or what it waited for",
        RECORD,
        (r'\b\w*(?:fsync|sync|commit|flush)\w*_bucket\{.*\ble="',),
    ),
    Kind(
        "Redis' log of delayed syncs",
        "when a write to the append-only file had waited two seconds for its sync",
        "how long that sync took, or what it waited for",
        RECORD_BESIDE,
        (r"\bAsynchronous AOF fsync is taking too long\b",),
    ),
    Kind(
        "Redis' INFO",
        "how often a write to the append-only file was delayed by a sync since the server started",
        "when that was, or how long a sync took",
        RECORD,
        (r"^\s*aof_(?:delayed_fsync|pending_bio_fsync):\d",),
    ),
    Kind(
        "ZooKeeper's log of slow syncs",
        "when a sync of the transaction log took longer than ZooKeeper expects, and how long",
        "how long the other syncs took, or what the slow one waited for",
        RECORD_BESIDE,
        (r"\bfsync-ing the (?:write ahead|transaction) log\b.* took \d+ ?ms",),
    ),
    Kind(
        "CockroachDB's log of a stalled disk",
        "which file's write or sync took longer than CockroachDB expects, and how long",
        "what it waited for, or who else used the device",
        RECORD_BESIDE,
        (r"\bdisk (?:slowness|stall) detected: ",),
    ),
    Kind(
        "the statistics of RocksDB",
        "how many syncs of the WAL there were, and how long writes were stopped, in total",
        "how long a single sync took, or what it waited for",
        RECORD,
        (
            r"^\s*(?:Cumulative|Interval) (?:WAL|stall): ",
            r"^\s*\*\* (?:DB|Compaction) Stats\b",
            r"\bwrite_wal_time = \d",
            r"\brocksdb\.wal\.file\.sync\.micros\b",
        ),
    ),
    Kind(
        "Ceph's log of slow operations",
        "which step of an operation was slow, and how long it took",
        "which request of the device it waited for, or who else used it",
        RECORD_BESIDE,
        (
            r"\bslow operation observed for \w+, latency = ",
            r"\bBLUESTORE_SLOW_OP_ALERT\b",
            r"\b\d+ slow (?:ops|requests),? ",
        ),
    ),
)

_TRACERS = (
    Kind(
        "the result of btt, which adds the requests of blktrace up",
        "the shortest, mean and longest time that requests took in each part of the block layer",
        "which of them an fsync waited for; the recording that btt was given holds that",
        "blkparse -i FILE >blkparse.txt && syncline report blkparse.txt",
        (
            r"^=+ (?:All Devices|Device Overhead|Device Merge Information) =+$",
            r"^\s*(?:Q2Q|Q2G|Q2I|G2I|I2D|D2C|Q2C)\s+\d+\.\d+\s+\d+\.\d+\s",
        ),
    ),
    Kind(
        "a histogram that biolatency or its relatives print",
        "how many requests or calls took how long",
        "which of them belong to an fsync, or when they were slow",
        RECORD,
        (r"^\s*\w[\w ]*\s+:\s*count\s+distribution\s*$", r"^\s*\d+ -> \d+\s+: \d+\s+\|[* ]*\|"),
    ),
    Kind(
        "a table of biotop, which adds requests up",
        "which processes read and wrote how much, and the mean time of a request",
        "which of these requests an fsync waited for, or how long it took",
        RECORD,
        (r"^\s*PID\s+COMM\s+D\s+MAJ\s+MIN\s+DISK\s+I/O\s",),
    ),
    Kind(
        "a map that bpftrace prints, which holds counts and no event",
        "how many events fell into each row",
        "when a single one was slow, or what an fsync waited for",
        RECORD,
        (
            r"^@[\w]*(?:\[.*\])?:\s*(?:-?\d+)?\s*$",
            r"^[\[(](?:-?\d+[KMGTPE]?|\.\.\.)(?:, (?:-?\d+[KMGTPE]?|\.\.\.))?[\])]\s+\d+ \|[@ ]*\|?\s*$",
        ),
        looks_like_log=True,
    ),
    Kind(
        "a list of funccount or vfscount, which count calls of functions",
        "how often each function was called",
        "how long a call took, or what it waited for",
        RECORD,
        (r"^\s*(?:ADDR\s+)?FUNC\s+COUNT\s*$",),
    ),
    Kind(
        "the output of bcc's trace",
        "when each task came to a function, and by which others",
        "when it left the function, so not how long an fsync took",
        RECORD,
        (r"^\s*(?:TIME\s+)?PID\s+TID\s+COMM\s+FUNC\b",),
    ),
    Kind(
        "the result of perf report",
        "in which functions the CPUs spent their time",
        "what a thread waited for, because a thread that waits for a device uses no CPU",
        RECORD,
        (r"^#\s+Overhead\s+(?:Command|Shared Object|Symbol)\b", r"^\s+\d+\.\d+%\s+\S+\s+\[k\]\s"),
    ),
    Kind(
        "text of babeltrace2 with other names than it prints by default (`--names`)",
        "what each event holds",
        "in the form that Syncline reads",
        PRINT,
        (
            # header, scope, and none.
            r"^timestamp = \S+, (?:[\w:]+ = .*, )?name = \w",
            r"^\[[\d: .-]+\] (?:\(\+\S+\) )?[^{}]*: stream\.\w+(?:\.\w+)? = \{",
            r"^\[[\d: .-]+\] (?:\(\+\S+\) )?[^{}]*: \{ [^{}=]*[^{}= ][^{}=]* \}, \{",
        ),
        looks_like_log=True,
    ),
    Kind(
        "a trace of system calls by truss, dtruss, ktrace or fs_usage, thus of another kernel than Linux",
        "which calls a program made there, and which failed",
        "what Linux would do for them, or what an fsync waited for",
        RECORD,
        (
            # FreeBSD, Solaris, dtruss, kdump, fs_usage.
            r"\)\s*\t\s*(?:= -?\d+ \(0x[0-9a-f]+\)|ERR#\d+ )",
            r"^\d+/\d+:\s.*\)\s+(?:= \d|Err#\d)",
            r"^\s*PID/THRD\s.*\bSYSCALL\(args\)",
            r"^\s*\d+(?:\s\d+)? \S+\s+(?:CALL|NAMI|RET)\s+[\w\"]",
            r"^\d\d:\d\d:\d\d(?:\.\d+)?\s+\w+\s.*\s\d+\.\d{6} [W ]\s*\S.*\.\d+$",
        ),
    ),
    Kind(
        "the output of sysdig",
        "when each call ended, in older versions also when it began, and for which file",
        "what an fsync waited for, or in newer versions how long it took",
        RECORD,
        # The time of day, or what `-t` chooses: a date, seconds, or none. `-pc` adds the container.
        (
            r"^\d+ (?:\d{4}-\d\d-\d\d )?(?:(?:\d\d:\d\d:\d\d|\d+)\.\d{9} )?\d+ \S.*? \(\d+(?:[.:]\d+)*\) [<>] \w+",
        ),
    ),
    Kind(
        "a table of fsyncsnoop, which traces the latency of calls",
        "how long each fsync took, for which thread and file",
        "when it began, or what it waited for",
        RECORD,
        (r"^\s*(?:TIMEs?\s+)?COMM\s+PID\s+LATms\s+FD\s",),
    ),
    Kind(
        "a table of iosnoop, which traces the requests of devices",
        "how long each request took at the device",
        "which of them an fsync waited for, or how long the fsync took",
        RECORD,
        (r"^\s*(?:\w+\s+)?COMM\s+PID\s+TYPE\s+DEV\s+BLOCK\s",),
        looks_like_log=True,
    ),
    Kind(
        "a table of fileslower, which lists slow reads and writes",
        "which reads and writes took longer than a limit, for which thread and file",
        "how long an fsync took, or what it waited for",
        RECORD,
        (r"^\s*TIME\(s\)\s+COMM\s+[PT]ID\s+D\s+BYTES\s+LAT\(ms\)",),
    ),
    Kind(
        "a list of samples of threads by xcapture or psn",
        "in which call, and in which function of the kernel, threads were found how often",
        "how long a single fsync took, or which file's was slow",
        RECORD,
        (
            r"^\s*TIMESTAMP[\s,].*\bTID[\s,]+TGID[\s,].*\bSTATE[\s,].*\bSYSCALL\b",
            r"^\s*TID\s+TGID\s+STATE\s+USERNAME\s+EXE\s+COMM\s+SYSCALL\b",
            r"^\s*samples \| avg_threads \| ",
        ),
    ),
)

# Of the kinds whose sign a line has, the first one is meant.
KINDS = (*_STACKS, *_CALLS_ADDED_UP, *_MACHINE, *_BENCHMARKS, *_DATABASES, *_TRACERS)
