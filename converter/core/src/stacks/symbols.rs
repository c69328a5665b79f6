//! Names for addresses of user stacks that the tracer could not look up, since their process had gone by then.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use object::read::elf::{ElfFile, FileHeader, ProgramHeader};
use object::{Endianness, FileKind, Object, ObjectSymbol, SymbolKind, elf};

use crate::error::Result;
use crate::event::Kind;
use crate::input::open::open_inputs;
use crate::merge::{Merge, MergeStep};
use crate::run::Options;
use crate::stacks::lines;

/// What a recorder has found beside its log: texts of frames, by process and address.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    frames: HashMap<(u32, u64), String>,
}

impl Symbols {
    /// A frame's text is `function+offset (file)`, as bpftrace's style `perf` has it behind the address.
    pub fn new(frames: impl IntoIterator<Item = (u32, u64, String)>) -> Self {
        Self { frames: frames.into_iter().map(|(pid, address, text)| ((pid, address), text)).collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The lines of a stack with the names that are known.
    pub fn name<'a>(&self, pid: u32, raw: &'a [u8]) -> Cow<'a, [u8]> {
        let known = |line| bare_address(line).and_then(|address| Some((address, self.frames.get(&(pid, address))?)));
        if !lines(raw).any(|line| known(line).is_some()) {
            return Cow::Borrowed(raw);
        }
        let mut named = Vec::with_capacity(raw.len() * 2);
        for line in lines(raw) {
            match known(line) {
                Some((address, text)) => named.extend_from_slice(format!("{address:x} {text}").as_bytes()),
                None => named.extend_from_slice(line),
            }
            named.push(b'\n');
        }
        Cow::Owned(named)
    }
}

/// The address of a frame that has no name: `7f12 0x7f12 ([unknown])`, or `0x7f12` alone.
fn bare_address(line: &[u8]) -> Option<u64> {
    let line = std::str::from_utf8(line).ok()?.trim();
    let hex = match line.strip_suffix("([unknown])") {
        Some(rest) => rest.trim().split(' ').next()?,
        None => line.strip_prefix("0x")?,
    };
    u64::from_str_radix(hex, 16).ok()
}

/// A thread that had a stack without names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnresolvedFrames {
    pub tid: u32,
    pub comm: String,
    pub addresses: BTreeSet<u64>,
}

/// The addresses without a name in the stacks of logs, by thread.
pub fn nameless(inputs: Vec<String>) -> Result<Vec<UnresolvedFrames>> {
    let options = Options { inputs, ..Options::default() };
    let mut merge =
        Merge::new(open_inputs(&options)?, options.window_ns, 1, options.source_options, HashMap::new(), false);
    let mut found: BTreeMap<(u32, String), BTreeSet<u64>> = BTreeMap::new();
    loop {
        match merge.step()? {
            MergeStep::End => break,
            MergeStep::Idle | MergeStep::EndOf(_) => {}
            MergeStep::MergedBatch(piece) => {
                let names = &piece.batch.names;
                for event in &piece.batch.events {
                    let Kind::CallEnter { stack, .. } = event.kind else { continue };
                    if !stack.is_some() {
                        continue;
                    }
                    let mut bare = lines(names.get(stack)).filter_map(bare_address).peekable();
                    if bare.peek().is_some() {
                        let key = (event.tid, names.text(event.comm).into_owned());
                        found.entry(key).or_default().extend(bare);
                    }
                }
                merge.recycle(piece);
            }
        }
    }
    Ok(found.into_iter().map(|((tid, comm), addresses)| UnresolvedFrames { tid, comm, addresses }).collect())
}

/// Functions at offsets in an ELF file, as `function+offset`; `None` where its symbols name none there.
pub fn functions(file: &Path, offsets: &[u64]) -> std::io::Result<Vec<Option<String>>> {
    let data = fs::read(file)?;
    let found = match FileKind::parse(data.as_slice()) {
        Ok(FileKind::Elf64) => in_elf::<elf::FileHeader64<Endianness>>(&data, offsets),
        Ok(FileKind::Elf32) => in_elf::<elf::FileHeader32<Endianness>>(&data, offsets),
        _ => None,
    };
    Ok(found.unwrap_or_else(|| vec![None; offsets.len()]))
}

fn in_elf<H: FileHeader<Endian = Endianness>>(data: &[u8], offsets: &[u64]) -> Option<Vec<Option<String>>> {
    let file = ElfFile::<H>::parse(data).ok()?;
    let endian = file.endian();
    // (address, size, name), from the full table where the file has it.
    let mut functions: Vec<(u64, u64, &str)> = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition() && symbol.size() > 0)
        .filter_map(|symbol| Some((symbol.address(), symbol.size(), symbol.name().ok()?)))
        .collect();
    functions.sort_unstable();
    let find = |offset: u64| {
        let segment = file.elf_program_headers().iter().find(|segment| {
            let from: u64 = segment.p_offset(endian).into();
            segment.p_type(endian) == elf::PT_LOAD
                && offset.checked_sub(from).is_some_and(|at| at < segment.p_filesz(endian).into())
        })?;
        let address = offset - segment.p_offset(endian).into() + segment.p_vaddr(endian).into();
        let at = functions.partition_point(|(start, ..)| *start <= address);
        // Of functions at one address the last is as good as any; one that ends before it says nothing of it.
        let (start, _, name) = functions[..at].iter().rev().find(|(start, size, _)| address - start < *size)?;
        Some(format!("{name}+{}", address - start))
    };
    Some(offsets.iter().map(|&offset| find(offset)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_frames_without_a_name_are_named() {
        let symbols = Symbols::new([
            (7, 0x7f12, "fsync+14 (/lib/libc.so.6)".to_owned()),
            (7, 0x30, "main+3 (/bin/x)".to_owned()),
        ]);
        let raw = b"\t7f12 0x7f12 ([unknown])\n\t7f13 0x7f13 ([unknown])\n\t30 start+0 (/bin/x)\n\t0x30\n";
        let want =
            b"7f12 fsync+14 (/lib/libc.so.6)\n7f13 0x7f13 ([unknown])\n30 start+0 (/bin/x)\n30 main+3 (/bin/x)\n";
        assert_eq!(symbols.name(7, raw).as_ref(), want);
        assert_eq!(symbols.name(8, raw).as_ref(), raw);
    }
}
