//! The words of the writeback tracepoints and of the syscalls, as the thesis's script prints them.

use crate::event::Op;

/// What a word in the place of EVENT means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    AddFolio,
    Submit,
    Complete,
    Start,
    End,
    Enter(Op),
    Exit(Op),
}

impl Word {
    #[inline]
    pub(super) fn of(word: &[u8]) -> Option<Self> {
        match word {
            b"bio_add_folio" => Some(Self::AddFolio),
            b"bio_submit" => Some(Self::Submit),
            b"bio_complete" => Some(Self::Complete),
            b"start" | b"sync_start" => Some(Self::Start),
            b"exit" | b"sync_end" => Some(Self::End),
            _ => Self::of_call(word),
        }
    }

    /// Fields that its event has a place for; `comm` and the like are on every event.
    pub(super) fn fields(self) -> &'static [&'static str] {
        match self {
            Self::AddFolio => &["id", "bio", "start", "len"],
            Self::Submit => &["id", "bio", "sector", "dev"],
            Self::Complete => &["bio", "sector", "dev"],
            Self::Start => &["id", "start", "end", "datasync", "dev", "ino", "fs", "path"],
            Self::End => &["id", "ret"],
            Self::Enter(_) => &["stack"],
            Self::Exit(_) => &["ret"],
        }
    }

    fn of_call(word: &[u8]) -> Option<Self> {
        if let Some(op) = Op::from_name(word) {
            return Some(Self::Enter(op));
        }
        if let Some(op) = word.strip_prefix(b"sys_enter_") {
            return Op::from_name(op).map(Self::Enter);
        }
        let op = word
            .strip_prefix(b"sys_exit_")
            .or_else(|| word.strip_prefix(b"exit_"))
            .or_else(|| word.strip_suffix(b"_exit"))
            .or_else(|| word.strip_suffix(b" exit"))?;
        Op::from_name(op).map(Self::Exit)
    }
}
