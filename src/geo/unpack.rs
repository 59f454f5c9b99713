//! The bytes of a database file, unpacked if they are gzip (RFC 1952).

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::database::Fault;

/// The largest database that is read. A small gzip file can unpack to any size.
pub const LARGEST: u64 = 1 << 30;

const GZIP: &[u8] = &[0x1f, 0x8b];

/// Reads a whole file.
pub fn read(path: &Path) -> Result<Vec<u8>, Fault> {
    // Opening a pipe would wait for somebody to write to it.
    let metadata = std::fs::metadata(path).map_err(Fault::Unreadable)?;
    if metadata.file_type().is_fifo() {
        let error = std::io::Error::new(ErrorKind::InvalidInput, "it is a pipe, not a file");
        return Err(Fault::Unreadable(error));
    }
    let file = File::open(path).map_err(Fault::Unreadable)?;
    let bytes = bounded(file, LARGEST, Fault::Unreadable)?;
    match bytes.starts_with(GZIP) {
        true => unpack(&bytes, LARGEST),
        false => Ok(bytes),
    }
}

/// Unpacks up to `largest` bytes.
pub fn unpack(packed: &[u8], largest: u64) -> Result<Vec<u8>, Fault> {
    bounded(MultiGzDecoder::new(packed), largest, |error| {
        Fault::Packed(match error.kind() {
            ErrorKind::UnexpectedEof => "it ends too early".to_owned(),
            _ => error.to_string(),
        })
    })
}

fn bounded(
    source: impl Read,
    largest: u64,
    fault: impl Fn(std::io::Error) -> Fault,
) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    let mut source = source.take(largest.saturating_add(1));
    source.read_to_end(&mut bytes).map_err(fault)?;
    match bytes.len() as u64 > largest {
        true => Err(Fault::TooLarge),
        false => Ok(bytes),
    }
}
