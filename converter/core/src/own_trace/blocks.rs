//! Reads a trace on a thread of its own, and decompresses its packets there.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Scope;

use super::Stop;
use super::decompress::Decompress;
use crate::error::Error;
use crate::input_file::{Chunk, ChunkReader, Input};
use crate::trace_layout::compressed::is_compressed;
use crate::trace_layout::fields::trace;
use crate::trace_layout::wire::{Fields, Wire, end_of_whole};

/// Number of blocks that wait to be read.
const WAITING: usize = 2;

/// Whole packets, none of them compressed.
#[derive(Default)]
pub(super) struct Block {
    pub(super) packets: Vec<u8>,
    /// Bytes that have been read from disk.
    pub(super) consumed_bytes: u64,
}

/// The blocks of a trace. Dropping it ends its thread.
pub(super) struct Blocks {
    full: Receiver<Result<Block, Stop>>,
    empty: SyncSender<Block>,
}

impl Blocks {
    pub(super) fn start<'scope>(scope: &'scope Scope<'scope, '_>, input: Input) -> Result<Self, Error> {
        let (send, full) = sync_channel(WAITING);
        // Besides those that wait, one block is being filled and one is being read.
        let (empty, reused) = sync_channel(WAITING + 2);
        let work = move || {
            let mut out = Out { full: &send, empty: &reused };
            if let Err(Some(stop)) = read(input, &mut out) {
                let _ = send.send(Err(stop));
            }
        };
        std::thread::Builder::new().name("syncline-read".into()).spawn_scoped(scope, work).map_err(Error::Thread)?;
        Ok(Self { full, empty })
    }

    /// Returns the next block; `None` at the end of the trace.
    pub(super) fn next(&self) -> Result<Option<Block>, Stop> {
        self.full.recv().map_or(Ok(None), |block| block.map(Some))
    }

    /// Reuses the memory of a block.
    pub(super) fn recycle(&self, block: Block) {
        let _ = self.empty.try_send(block);
    }
}

struct Out<'a> {
    full: &'a SyncSender<Result<Block, Stop>>,
    empty: &'a Receiver<Block>,
}

impl Out<'_> {
    /// Fails if nobody reads on.
    fn send(&self, packets: &[u8], consumed_bytes: u64) -> Result<(), Option<Stop>> {
        let mut block = self.empty.try_recv().unwrap_or_default();
        block.packets.clear();
        block.packets.extend_from_slice(packets);
        block.consumed_bytes = consumed_bytes;
        self.full.send(Ok(block)).map_err(|_| None)
    }
}

/// Sends the packets of a trace. Fails with `None` if the receiver is gone, which is no error of the trace.
fn read(input: Input, out: &mut Out<'_>) -> Result<(), Option<Stop>> {
    let mut chunks = ChunkReader::new(input);
    let mut chunk = Chunk::default();
    let mut decompress = Decompress::default();
    while chunks.next(&mut chunk, end_of_whole).map_err(|_| Stop::DAMAGED)? {
        let consumed = chunks.input().consumed_bytes();
        let mut packets = Fields(chunk.bytes());
        let mut plain = chunk.bytes();
        loop {
            let before = packets.0.len();
            match packets.next() {
                Some(Ok((trace::PACKET, Wire::Bytes(packet)))) if is_compressed(packet) => {
                    out.send(&plain[..plain.len() - before], consumed)?;
                    plain = packets.0;
                    let mut fields = Fields(packet);
                    let Some(Ok((_, Wire::Bytes(data)))) = fields.next() else { return Err(Some(Stop::DAMAGED)) };
                    if !fields.0.is_empty() {
                        return Err(Some(Stop::FOREIGN));
                    }
                    out.send(decompress.packets(data).ok_or(Stop::DAMAGED)?, consumed)?;
                }
                Some(Ok((trace::PACKET, Wire::Bytes(_)))) => {}
                Some(Ok(_)) => return Err(Some(Stop::FOREIGN)),
                Some(Err(_)) => return Err(Some(Stop::DAMAGED)),
                None => break,
            }
        }
        out.send(plain, consumed)?;
    }
    Ok(())
}
