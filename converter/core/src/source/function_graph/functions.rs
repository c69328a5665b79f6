//! The functions of the kernel that say what a sync does. The names are those that the recorder places its probes on.

use crate::event::Op;
use crate::event::probe::{SyncScope, WaitSite};
use crate::source::dynamic_events::function_name;

/// What a function is to a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A system call.
    Call(Op),
    Sync(SyncScope),
    Wait(WaitSite),
    /// It writes page cache back and waits for that, or it waits for what others write.
    Data,
    None,
}

/// What the architectures put before the name of a system call.
const CALL_PREFIXES: [&[u8]; 7] =
    [b"__x64_sys_", b"__arm64_sys_", b"__riscv_sys_", b"__s390x_sys_", b"__ia32_sys_", b"SyS_", b"sys_"];

pub(super) fn role_of(symbol: &[u8]) -> Role {
    let name = function_name(symbol);
    match name {
        b"vfs_fsync_range" | b"ext4_sync_file" | b"xfs_file_fsync" | b"xfs_dir_fsync" | b"btrfs_sync_file"
        | b"f2fs_sync_file" | b"ext2_fsync" | b"bch2_fsync" | b"ovl_fsync" | b"ovl_dir_fsync" | b"fuse_fsync"
        | b"fuse_dir_fsync" | b"nfs_file_fsync" | b"cifs_fsync" | b"cifs_strict_fsync" | b"ceph_fsync"
        | b"gfs2_fsync" | b"blkdev_fsync" | b"fat_file_fsync" | b"exfat_file_fsync" | b"ntfs_file_fsync" => {
            Role::Sync(SyncScope::File)
        }
        b"jbd2_complete_transaction" | b"jbd2_log_wait_commit" => Role::Wait(WaitSite::Jbd2Commit),
        b"ext4_fc_commit" => Role::Wait(WaitSite::Ext4FastCommit),
        b"xfs_log_force_seq" | b"xfs_log_force_lsn" => Role::Wait(WaitSite::XfsLogForce),
        b"btrfs_sync_log" => Role::Wait(WaitSite::BtrfsLog),
        b"btrfs_commit_transaction" => Role::Wait(WaitSite::BtrfsCommit),
        b"f2fs_issue_flush" => Role::Wait(WaitSite::F2fsFlush),
        b"f2fs_issue_checkpoint" | b"f2fs_write_checkpoint" => Role::Wait(WaitSite::F2fsCheckpoint),
        b"blkdev_issue_flush" => Role::Wait(WaitSite::Flush),
        b"file_write_and_wait_range"
        | b"filemap_write_and_wait_range"
        | b"file_fdatawait_range"
        | b"__filemap_fdatawait_range"
        | b"filemap_fdatawait_range"
        | b"folio_wait_writeback"
        | b"wait_on_page_writeback"
        | b"btrfs_wait_ordered_range"
        | b"f2fs_wait_on_node_pages_writeback" => Role::Data,
        _ => call(name).map_or(Role::None, Role::Call),
    }
}

fn call(name: &[u8]) -> Option<Op> {
    let call = CALL_PREFIXES.iter().find_map(|prefix| name.strip_prefix(*prefix))?;
    // The flags of msync(), which may ask for no sync, are not printed.
    Op::from_name(call).filter(|&op| op != Op::Msync)
}

/// The name of the recorder's event at the entry of a function, and at its return. The low-level log has these.
pub(super) fn event_names(role: Role, call: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (start, end): (&[u8], &[u8]) = match role {
        Role::Call(_) => return ([b"sys_enter_", call].concat(), [b"sys_exit_", call].concat()),
        Role::Sync(_) => (b"fsync_enter", b"fsync_exit"),
        Role::Data => (b"filemap_wait", b"filemap_wait_end"),
        Role::Wait(site) => {
            let name = site.event_name();
            return (name.to_vec(), [name, b"_end"].concat());
        }
        Role::None => (b"", b""),
    };
    (start.to_vec(), end.to_vec())
}
