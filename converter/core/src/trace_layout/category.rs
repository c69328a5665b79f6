//! The categories of slices and instants. A reader recognizes what an event stands for by it.

#[derive(Clone, Copy)]
#[repr(u64)]
pub(crate) enum Category {
    Call = 1,
    Sync,
    Phase,
    Wait,
    Bio,
    Mark,
    Loss,
    Meta,
    Commit,
    Common,
    Thread,
    Process,
    CommitStep,
    /// The thread of a track.
    Track,
    WriteWait,
    PredictedWrite,
    PageCacheState,
    FileOp,
    /// One of the slowest syncs, once more.
    Slowest,
}

pub(crate) const CATEGORIES: [(Category, &str); 19] = [
    (Category::Call, "syncline.call"),
    (Category::Sync, "syncline.sync"),
    (Category::Phase, "syncline.phase"),
    (Category::Wait, "syncline.wait"),
    (Category::Bio, "syncline.bio"),
    (Category::Mark, "syncline.mark"),
    (Category::Loss, "syncline.loss"),
    (Category::Meta, "syncline.meta"),
    (Category::Commit, "syncline.commit"),
    (Category::Common, "syncline.common"),
    (Category::Thread, "syncline.thread"),
    (Category::Process, "syncline.process"),
    (Category::CommitStep, "syncline.commit_step"),
    (Category::Track, "syncline.track"),
    (Category::WriteWait, "syncline.write_wait"),
    (Category::PredictedWrite, "syncline.predicted_write"),
    (Category::PageCacheState, "syncline.page_cache_state"),
    (Category::FileOp, "syncline.file_op"),
    (Category::Slowest, "syncline.slowest"),
];
