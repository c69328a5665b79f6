//! Whether a Parquet file is as it was written.
//!
//! The readers of Parquet do not notice a changed value: the format's checksums of pages are optional, and leave out the metadata. So the metadata
//! hold a checksum of the whole file, in which its own digits are zeros.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use memchr::memmem;
use parquet::file::metadata::KeyValue;

const KEY: &str = "syncline.checksum";
const ZEROS: &str = "00000000";
/// The name of the writer in the metadata. Another program that writes the rows again keeps the key, but not this.
const WRITER: &[u8] = b"parquet-rs version";
/// The length of the metadata and the magic number, at the end of the file.
const TAIL: usize = 8;
const MAGIC: &[u8] = b"PAR1";
const BLOCK: usize = 1 << 20;

pub(super) fn placeholder() -> KeyValue {
    KeyValue::new(KEY.to_owned(), ZEROS.to_owned())
}

/// The key and the header of its value, as Thrift's compact protocol writes them in the metadata: 0x18 is the next field, with bytes in it, and
/// their number follows.
fn marker() -> Vec<u8> {
    [KEY.as_bytes(), &[0x18, ZEROS.len() as u8]].concat()
}

/// The place of the digits in the metadata; `None` without a checksum.
fn digits(metadata: &[u8]) -> Option<std::ops::Range<usize>> {
    let marker = marker();
    // The last one: a text before it may hold anything.
    let start = memmem::rfind(metadata, &marker)? + marker.len();
    (start + ZEROS.len() <= metadata.len()).then(|| start..start + ZEROS.len())
}

/// Puts the checksum into the metadata. `crc` is of all bytes before them.
pub(super) fn seal(mut crc: flate2::Crc, metadata: &mut [u8]) {
    let Some(place) = digits(metadata) else { return };
    crc.update(metadata);
    metadata[place].copy_from_slice(format!("{:08x}", crc.sum()).as_bytes());
}

/// Returns whether a Parquet file differs from what Syncline has written. False for a file without a checksum, and for one that another program
/// has written, because nobody knows what they should hold.
pub fn is_damaged(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut tail = [0; TAIL];
    if size < TAIL as u64 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-(TAIL as i64)))?;
    file.read_exact(&mut tail)?;
    let length = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]])) + TAIL as u64;
    if &tail[4..] != MAGIC || length > size {
        // Whatever reads it says that it is no Parquet file.
        return Ok(false);
    }
    let mut metadata = vec![0; length as usize];
    file.seek(SeekFrom::End(-(length as i64)))?;
    file.read_exact(&mut metadata)?;
    let Some(place) = digits(&metadata).filter(|_| memmem::find(&metadata, WRITER).is_some()) else { return Ok(false) };
    let expected = metadata[place.clone()].to_vec();
    metadata[place].copy_from_slice(ZEROS.as_bytes());
    let mut crc = flate2::Crc::new();
    file.rewind()?;
    let mut rows = file.take(size - length);
    let mut block = vec![0; BLOCK];
    loop {
        match rows.read(&mut block)? {
            0 => break,
            read => crc.update(&block[..read]),
        }
    }
    crc.update(&metadata);
    Ok(format!("{:08x}", crc.sum()).as_bytes() != expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file as `seal` leaves it: any bytes, then the metadata.
    fn file() -> Vec<u8> {
        let rows = b"PAR1 some rows";
        let mut crc = flate2::Crc::new();
        crc.update(rows);
        let mut metadata = marker();
        metadata.extend(ZEROS.as_bytes());
        metadata.extend(WRITER);
        metadata.extend((metadata.len() as u32).to_le_bytes());
        metadata.extend(MAGIC);
        seal(crc, &mut metadata);
        [&rows[..], &metadata].concat()
    }

    fn damaged(bytes: &[u8]) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.parquet");
        std::fs::write(&path, bytes).unwrap();
        is_damaged(&path).unwrap()
    }

    #[test]
    fn each_changed_byte_of_the_rows_is_noticed() {
        let whole = file();
        assert!(!damaged(&whole));
        for at in 0..b"PAR1 some rows".len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            assert!(damaged(&bytes), "byte {at}");
        }
    }

    #[test]
    fn a_changed_digit_is_noticed() {
        let mut bytes = file();
        let at = memmem::find(&bytes, &marker()).unwrap() + marker().len();
        bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
        assert!(damaged(&bytes));
    }

    #[test]
    fn files_of_other_programs_are_not_judged() {
        assert!(!damaged(b""));
        assert!(!damaged(b"PAR1PAR1"));
        let of_another = file().iter().map(|&byte| if byte == b'-' { b' ' } else { byte }).collect::<Vec<_>>();
        assert!(!damaged(&of_another));
    }
}
