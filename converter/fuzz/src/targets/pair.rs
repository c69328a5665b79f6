//! Any sequence of events. There are few ids, addresses and tasks, so that they match.

use std::sync::Arc;

use crate::checks::{Checker, Ledger, Nowhere};
use syncline_core::block::devices_below::DevicesBelow;
use syncline_core::dedup::Provenance;
use syncline_core::event::bio_flags::{BioFlags, Direction};
use syncline_core::event::probe::{BioRole, FileBuffer, NO_OFFSET, Probe, SyncScope, WaitSite};
use syncline_core::event::{Asked, Dev, Event, Kind, NO_ID, NO_SECTOR, Op, UNKNOWN_TASK, WaitKind};
use syncline_core::location::{Location, Locations};
use syncline_core::names::{NameId, Names};
use syncline_core::pair::{Files, Out, Pairer};

const STEPS: [i64; 8] = [0, 0, 1, 1, 10, 1_000, 7_000_000_000, 61_000_000_000];

pub(super) fn run(data: &[u8]) {
    let Some((&mode, data)) = data.split_first() else { return };
    let (processes, ordered) = (mode & 1 != 0, mode & 2 == 0);
    let mut names = Names::default();
    let texts: [NameId; 4] = ["a", "b", "main;f", "main;g"].map(|text| names.intern(text.as_bytes()));

    let mut nowhere = Nowhere;
    let mut checker = Checker::new(&mut nowhere, ordered);
    let mut ledger = Ledger::default();
    let (locations, below) = (Arc::new(Locations::default()), DevicesBelow::default());
    let mut pairer = Pairer::new(processes, locations, std::iter::empty().collect(), Files::default(), below);
    let provenance = Provenance::of_single_log(Location::default());
    let mut now = 1_000_000_000_000i64;
    for bytes in data.chunks_exact(3) {
        let [a, b, c] = [bytes[0], bytes[1], bytes[2]];
        let step = STEPS[usize::from(a >> 5)];
        now = if ordered || c & 0x80 == 0 { now + step } else { (now - step).max(0) };
        let task = u32::from(a >> 3 & 3) + 1;
        let (id, bio) = (u64::from(b & 3), u64::from(b >> 2 & 3));
        let dev = Dev::new(u32::from(b >> 4 & 1) * 254, u32::from(b >> 4 & 1) * 16);
        let sector = if b & 0x20 == 0 { NO_SECTOR } else { i64::from(b >> 6) };
        let op = Op::ALL[usize::from(b) % Op::ALL.len()];
        let of = if b & 3 == 3 && c & 0x40 != 0 { NO_ID } else { id };
        let kind = match a & 7 {
            0 => Kind::CallEnter { op, stack: texts[2 + usize::from(c & 1)], path: texts[0], call_only: c & 4 != 0 },
            1 => Kind::CallExit {
                op,
                ret: (c & 1 == 0).then_some(0),
                stack: NameId::NONE,
                untimed: c & 0b1100 == 0b1100,
                entry_lost: c & 0b11_0000 == 0b11_0000,
            },
            2 => Kind::SyncStart {
                id: of,
                start: 0,
                end: u64::MAX,
                path: texts[usize::from(c & 1)],
                fs: texts[0],
                ino: u64::from(c & 3),
                dev,
                datasync: c & 4 != 0,
                by_thread: c & 8 != 0,
            },
            7 if c & 0x10 != 0 => {
                let wait = WaitKind::ALL[usize::from(c & 15) % WaitKind::ALL.len()];
                let transaction = u64::from(b >> 6);
                if c & 0x20 == 0 {
                    Kind::WaitStart { id, wait, transaction }
                } else {
                    Kind::WaitEnd { id, wait, transaction }
                }
            }
            3 | 7 => Kind::BioAddFolio {
                id,
                bio,
                offset: u64::from(c & 15) * 512,
                len: u64::from(c >> 4 & 7) * 512,
                dev,
                ino: u64::from(b >> 5),
            },
            4 if c & 0x10 != 0 && sector != NO_SECTOR => block_event(c, dev, sector),
            4 => Kind::BioSubmit {
                id,
                bio,
                sector,
                dev,
                background: c & 0x20 != 0,
                bytes: u64::from(c >> 6) * 512,
                flags: None,
            },
            5 => Kind::BioComplete { bio, sector, dev, error: (c & 1 != 0).then_some(0) },
            _ if c & 0x40 != 0 => Kind::Probe(probe(b, c, dev, sector, texts)),
            _ => sync_end(of, c, dev, texts, processes),
        };
        let (tid, pid) = if processes { (UNKNOWN_TASK, task) } else { (task, UNKNOWN_TASK) };
        let event = Event { ts: now, tid, pid, comm: texts[usize::from(c >> 1 & 1)], line: 1, kind };
        ledger.add(&event);
        pairer
            .event(&event, &provenance, &mut Out { names: &names, sink: &mut checker })
            .expect("nothing can fail to be written nowhere");
    }
    pairer.finish(&mut Out { names: &names, sink: &mut checker }).expect("nothing can fail to be written nowhere");
    checker.balance(&ledger, &pairer.losses);
}

/// Any event of the block layer.
fn block_event(c: u8, dev: Dev, sector: i64) -> Kind {
    match c & 3 {
        0 => Kind::BlockRemap {
            dev,
            sector,
            bytes: 512,
            from_dev: Dev::UNKNOWN,
            from_sector: sector,
            flags: block_flags(c),
        },
        1 => Kind::BlockSubmit { dev: Dev::new(7, 0), sector, bytes: u64::from(c >> 5) * 512, flags: block_flags(c) },
        2 if c & 4 != 0 => {
            Kind::BlockIssue { dev: Dev::new(7, 0), sector, bytes: u64::from(c >> 5) * 512, flags: block_flags(c) }
        }
        3 if c & 8 != 0 => {
            let bytes = u64::from(c >> 5) * 512;
            let way = Direction::ALL[usize::from(c >> 5) % Direction::ALL.len()];
            let asked = if c & 4 == 0 { Asked::Way(way) } else { Asked::Flags(block_flags(c)) };
            let since_issue = (c & 0x20 != 0).then_some(u64::from(c) * 100);
            let since_begin = (c & 0x40 != 0).then_some(u64::from(c) * 150);
            Kind::BlockReport { dev: Dev::new(7, 0), sector, bytes, asked, since_begin, since_issue }
        }
        _ => Kind::BlockComplete {
            dev: Dev::new(7, 0),
            sector,
            bytes: u64::from(c >> 5) * 512,
            flags: block_flags(c),
            error: (c & 8 != 0).then_some(-5),
            // The end of a bio without sectors is no completion.
            is_bio: c & 16 != 0 && c >> 5 != 0,
        },
    }
}

/// The flags of a write, of a read, or of a flush if it has no sectors.
fn block_flags(c: u8) -> BioFlags {
    let operation = if c >> 5 == 0 { 2 } else { u64::from(c & 8 == 0) };
    BioFlags::of_opf(u64::from(c & 4) << 15 | operation).expect("it has 32 bits")
}

/// Any end of a sync.
fn sync_end(id: u64, c: u8, dev: Dev, texts: [NameId; 4], processes: bool) -> Kind {
    if processes && c & 0b11_0000 == 0b11_0000 {
        // Recorders that report a sync when it is over do not know its thread.
        let (fs, path) = (texts[usize::from(c >> 1 & 1)], texts[usize::from(c & 1)]);
        return Kind::SyncDone { dur: u64::from(c & 15) * 1000, fs, path, ret: (c & 1 == 0).then_some(0) };
    }
    Kind::SyncEnd {
        id,
        ret: i64::from(c) - 5,
        fs: texts[usize::from(c >> 1 & 1)],
        dev,
        ino: u64::from(c & 3),
        datasync: (c & 8 != 0).then_some(c & 1 != 0),
    }
}

/// Any event of a probe.
fn probe(b: u8, c: u8, dev: Dev, sector: i64, texts: [NameId; 4]) -> Probe {
    const ROLES: [BioRole; 11] = [
        BioRole::PageCache,
        BioRole::Unknown,
        BioRole::MaybePart,
        BioRole::Original,
        BioRole::Mirror,
        BioRole::Copy,
        BioRole::Chained,
        BioRole::NotPageCache,
        BioRole::Flush,
        BioRole::SentFlush,
        BioRole::Read,
    ];
    const SITES: [WaitSite; 9] = [
        WaitSite::Jbd2Commit,
        WaitSite::Ext4FastCommit,
        WaitSite::XfsLogForce,
        WaitSite::BtrfsLog,
        WaitSite::BtrfsCommit,
        WaitSite::F2fsFlush,
        WaitSite::F2fsCheckpoint,
        WaitSite::Flush,
        WaitSite::Buffer,
    ];
    let (bio, ino) = (u64::from(b >> 2 & 3), u64::from(b & 3));
    let scope = match b >> 4 {
        0xf => SyncScope::FileSystem,
        0xe => SyncScope::Data,
        0xd => SyncScope::Journal,
        0xc => SyncScope::Range,
        _ => SyncScope::File,
    };
    let pick = |of: usize| (usize::from(b) * of) >> 8;
    let (role, site) = (ROLES[pick(ROLES.len())], SITES[pick(SITES.len())]);
    let is_flush = matches!(role, BioRole::Flush | BioRole::SentFlush);
    // Not each recorder has the flags.
    let flags = (c & 0x20 != 0).then(|| block_flags(if is_flush { 0 } else { 0x20 } | c & 4));
    match c & 15 {
        0 | 1 => Probe::SyncEnter {
            function: texts[usize::from(b >> 6 & 1)],
            scope,
            dev,
            ino: if scope.is_whole_fs() { 0 } else { ino },
            generation: 0,
            path: texts[0],
            container_path: texts[1],
            fs: texts[1],
            datasync: (c & 0x10 != 0).then_some(true),
        },
        2 | 3 => Probe::SyncExit { scope, ret: (c & 0x10 == 0).then_some(0) },
        4..=7 => Probe::AddFolio {
            bio,
            dev,
            ino,
            offset: if c & 0x20 == 0 { u64::from(b >> 5) * 512 } else { NO_OFFSET },
            len: 512 + u64::from(c & 1) * 512,
            is_page: c & 0x10 != 0,
        },
        8 | 9 => Probe::Submit { bio, dev, sector, bytes: (u64::from(b & 3) + 1) * 512, role, flags },
        10 | 11 => {
            let role = [None, Some(BioRole::PageCache), Some(BioRole::Copy), Some(BioRole::NotPageCache)]
                [usize::from(c >> 1 & 3)];
            Probe::End {
                bio,
                error: Some(-(i32::from(c) & 1)),
                remaining: u32::from(b & 3),
                parent: u64::from(b >> 6),
                role,
            }
        }
        12 => {
            let buffer = (site == WaitSite::Buffer).then_some(FileBuffer { dev, ino, sector });
            Probe::WaitStart { site, transaction: 0, dev, buffer }
        }
        13 => Probe::WaitEnd { site },
        14 => Probe::WorkStart { dev, for_sync: b & 1 != 0 },
        _ => Probe::WorkEnd,
    }
}
