//! Symbols for frames of user stacks that the tracer could not resolve because their process had ended.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

use object::read::elf::{ElfFile, FileHeader, ProgramHeader};
use object::{Endianness, FileKind, Object, ObjectSymbol, SymbolKind, elf};

use crate::stacks::lines;

/// Symbols of frames by process and address, as the recorder has looked them up.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    frames: HashMap<(u32, u64), String>,
}

impl Symbols {
    /// Takes (process, address, text). A text is `function+offset (file)`, as bpftrace prints it after the address in stack mode `perf`.
    pub fn new(frames: impl IntoIterator<Item = (u32, u64, String)>) -> Self {
        Self { frames: frames.into_iter().map(|(pid, address, text)| ((pid, address), text)).collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Returns the lines of a stack with the symbols of its unresolved frames, as far as they are known.
    pub fn name<'a>(&self, pid: u32, raw: &'a [u8]) -> Cow<'a, [u8]> {
        let known =
            |line| unresolved_address(line).and_then(|address| Some((address, self.frames.get(&(pid, address))?)));
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

/// Returns the address of an unresolved frame: `7f12 0x7f12 ([unknown])`, or only `0x7f12`. `None` for a resolved frame.
pub(crate) fn unresolved_address(line: &[u8]) -> Option<u64> {
    let line = std::str::from_utf8(line).ok()?.trim();
    let hex = match line.strip_suffix("([unknown])") {
        Some(rest) => rest.trim().split(' ').next()?,
        None => line.strip_prefix("0x")?,
    };
    u64::from_str_radix(hex, 16).ok()
}

/// Returns the functions at offsets in an ELF file, as `function+offset`; `None` for an offset without a symbol.
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
    // (address, size, name) from both symbol tables: a stripped file has only the dynamic one.
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
        // Several symbols may have one address: any of them will do. A function that ends before the address is not it.
        let (start, _, name) = functions[..at].iter().rev().find(|(start, size, _)| address - start < *size)?;
        Some(format!("{name}+{}", address - start))
    };
    Some(offsets.iter().map(|&offset| find(offset)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unresolved_frames_get_symbols() {
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
