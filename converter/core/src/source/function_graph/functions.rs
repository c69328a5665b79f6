//! The functions of the kernel that say what a sync does, and the events that their entries and returns are. The names are those that the recorder
//! places its probes on.

use crate::event::probe::{Probe, SyncScope, WaitSite};
use crate::event::{Dev, Kind, Op};
use crate::names::{NameId, Names};
use crate::source::dynamic_events::{file_system_of, function_name};

/// What a function is to a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A system call.
    Call(Op),
    /// The sync function of a file system.
    Sync,
    Wait(WaitSite),
    /// It writes page cache back and waits for that, or it waits for what others write.
    Data,
    None,
}

const FUNCTIONS: &[(Role, &[&str])] = &[
    (
        Role::Sync,
        &[
            "vfs_fsync_range",
            "ext4_sync_file",
            "xfs_file_fsync",
            "xfs_dir_fsync",
            "btrfs_sync_file",
            "f2fs_sync_file",
            "ext2_fsync",
            "bch2_fsync",
            "ovl_fsync",
            "ovl_dir_fsync",
            "fuse_fsync",
            "fuse_dir_fsync",
            "nfs_file_fsync",
            "cifs_fsync",
            "cifs_strict_fsync",
            "ceph_fsync",
            "gfs2_fsync",
            "blkdev_fsync",
            "fat_file_fsync",
            "exfat_file_fsync",
            "ntfs_file_fsync",
        ],
    ),
    (Role::Wait(WaitSite::Jbd2Commit), &["jbd2_complete_transaction", "jbd2_log_wait_commit"]),
    (Role::Wait(WaitSite::Ext4FastCommit), &["ext4_fc_commit"]),
    (Role::Wait(WaitSite::XfsLogForce), &["xfs_log_force_seq", "xfs_log_force_lsn"]),
    (Role::Wait(WaitSite::BtrfsLog), &["btrfs_sync_log"]),
    (Role::Wait(WaitSite::BtrfsCommit), &["btrfs_commit_transaction"]),
    (Role::Wait(WaitSite::F2fsFlush), &["f2fs_issue_flush"]),
    (Role::Wait(WaitSite::F2fsCheckpoint), &["f2fs_issue_checkpoint", "f2fs_write_checkpoint"]),
    (Role::Wait(WaitSite::Flush), &["blkdev_issue_flush"]),
    (
        Role::Data,
        &[
            "file_write_and_wait_range",
            "filemap_write_and_wait_range",
            "file_fdatawait_range",
            "__filemap_fdatawait_range",
            "filemap_fdatawait_range",
            "folio_wait_writeback",
            "wait_on_page_writeback",
            "btrfs_wait_ordered_range",
            "f2fs_wait_on_node_pages_writeback",
        ],
    ),
    // Not msync: its flags, which may ask for no sync, are not recorded.
    (Role::Call(Op::Fsync), &["__x64_sys_fsync", "__arm64_sys_fsync"]),
    (Role::Call(Op::Fdatasync), &["__x64_sys_fdatasync", "__arm64_sys_fdatasync"]),
    (Role::Call(Op::SyncFileRange), &["__x64_sys_sync_file_range", "__arm64_sys_sync_file_range"]),
    (Role::Call(Op::Syncfs), &["__x64_sys_syncfs", "__arm64_sys_syncfs"]),
];

/// The names of all functions that Syncline uses.
pub(in crate::source) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().flat_map(|(_, names)| names.iter().copied())
}

pub(super) fn role_of(symbol: &[u8]) -> Role {
    let name = function_name(symbol);
    let found = FUNCTIONS.iter().find(|(_, names)| names.iter().any(|known| known.as_bytes() == name));
    found.map_or(Role::None, |(role, _)| *role)
}

/// The event of the entry of a function; `None` if it is of no use.
pub(in crate::source) fn entry(name: &[u8], names: &mut Names) -> Option<Kind> {
    Some(match role_of(name) {
        Role::Call(op) => Kind::enter(op),
        Role::Sync => {
            let fs = file_system_of(name);
            Kind::Probe(Probe::SyncEnter {
                function: names.intern(name),
                scope: SyncScope::File,
                dev: Dev::UNKNOWN,
                ino: 0,
                generation: 0,
                path: NameId::NONE,
                container_path: NameId::NONE,
                fs: if fs.is_empty() { NameId::NONE } else { names.intern(fs) },
                datasync: None,
            })
        }
        Role::Wait(site) => Kind::Probe(Probe::WaitStart { site, transaction: 0, dev: Dev::UNKNOWN, buffer: None }),
        Role::Data => Kind::Probe(Probe::FolioWait { dev: Dev::UNKNOWN, ino: 0 }),
        Role::None => return None,
    })
}

/// The event of the return of a function; `None` if it is of no use.
pub(in crate::source) fn returned(name: &[u8], ret: Option<i64>) -> Option<Kind> {
    Some(match role_of(name) {
        Role::Call(op) => Kind::exit(op, ret),
        Role::Sync => Kind::Probe(Probe::SyncExit { scope: SyncScope::File, ret }),
        Role::Wait(site) => Kind::Probe(Probe::WaitEnd { site }),
        Role::Data => Kind::Probe(Probe::FolioWaitEnd),
        Role::None => return None,
    })
}

/// An event as the low-level log has it.
pub(in crate::source) struct Logged {
    pub(in crate::source) event: Vec<u8>,
    pub(in crate::source) fields: Vec<(&'static [u8], Vec<u8>)>,
}

/// The event of a function in the low-level log, where it has the name of the recorder's event there.
pub(in crate::source) fn logged(name: &[u8], is_entry: bool, ret: Option<i64>) -> Logged {
    let of_probe = |start: &[u8], end: &[u8]| if is_entry { start.to_vec() } else { end.to_vec() };
    let role = role_of(name);
    let event = match role {
        Role::Call(op) => {
            let start: &[u8] = if is_entry { b"sys_enter_" } else { b"sys_exit_" };
            return Logged { event: [start, op.name().as_bytes()].concat(), fields: Vec::new() };
        }
        Role::Sync => of_probe(b"fsync_enter", b"fsync_exit"),
        Role::Data => of_probe(b"filemap_wait", b"filemap_wait_end"),
        Role::Wait(site) => of_probe(site.event_name(), &[site.event_name(), b"_end"].concat()),
        Role::None => Vec::new(),
    };
    let mut fields: Vec<(&[u8], Vec<u8>)> = vec![(b"__probe_func", function_name(name).to_vec())];
    if is_entry && role == Role::Sync {
        fields.push((b"ino", b"0".to_vec()));
    }
    fields.extend(ret.map(|ret| (&b"ret"[..], ret.to_string().into_bytes())));
    Logged { event, fields }
}
