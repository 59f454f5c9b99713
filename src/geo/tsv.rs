//! Reads tables of iptoasn.com: one range per line, columns separated by `\t`. The columns are either `first
//! last AS country description` or `first last country`; an IPv4 address may be an integer. Descriptions may
//! contain any bytes and are ignored.

use std::net::{IpAddr, Ipv4Addr};

use super::database::{DatabaseError, DatabaseUse};
use super::ranges::{GeoLocation, Row, Table};

const SYSTEMS: usize = 5;
const COUNTRIES: usize = 3;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The spellings of an unknown number or country.
const UNKNOWN: &[&[u8]] = &[b"None", b"none", b"Unknown", b"-", b""];

/// The rows read so far.
#[derive(Default)]
struct Rows {
    v4: Vec<Row<u32>>,
    v6: Vec<Row<u128>>,
}

/// Returns whether the first line has columns.
pub(super) fn has_columns(bytes: &[u8]) -> bool {
    lines(bytes)
        .next()
        .is_some_and(|(_, line)| line.contains(&b'\t'))
}

/// Reads the `wanted` data of a table. Its rows may be in any order, but must not overlap.
pub(super) fn parse(bytes: &[u8], wanted: &[DatabaseUse]) -> Result<Table, DatabaseError> {
    let Some((number, first)) = lines(bytes).next() else {
        return Err(fault(1, "the table is empty; download it again".to_owned()));
    };
    let columns = columns(first).map_err(|why| fault(number, why))?;
    let mut rows = Rows::default();
    for (number, line) in lines(bytes) {
        rows.add(number, line, columns, wanted)
            .map_err(|why| fault(number, why))?;
    }
    Table::of_rows(rows.v4, rows.v6).map_err(|(earlier, later)| {
        let why = format!(
            "this range overlaps that of line {earlier}; an address may be in one range only"
        );
        fault(later as usize, why)
    })
}

// === impl Rows ===

impl Rows {
    fn add(
        &mut self,
        number: usize,
        line: &[u8],
        columns: usize,
        wanted: &[DatabaseUse],
    ) -> Result<(), String> {
        let cells: Vec<&[u8]> = line.splitn(columns, |byte| *byte == b'\t').collect();
        let (first, last, asn, code) = match (columns, cells.as_slice()) {
            (SYSTEMS, [first, last, asn, code, _description]) => (first, last, system(asn)?, code),
            (COUNTRIES, [first, last, code]) => (first, last, 0, code),
            (columns, cells) => {
                let found = cells.len();
                return Err(format!(
                    "{found} columns, where the first line has {columns}; the file may be cut off"
                ));
            }
        };
        let (mut asn, mut country) = (asn, country(code)?);
        if !wanted.contains(&DatabaseUse::Asn) {
            asn = 0;
        }
        if !wanted.contains(&DatabaseUse::Country) {
            country = [0; 2];
        }
        let location = GeoLocation::new(asn, country);
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        self.add_range(first, last, location, number)
    }

    /// Adds a range within one address family. A range between IPv4-mapped addresses is IPv4; a larger one that
    /// contains them is IPv6.
    fn add_range(
        &mut self,
        first: &[u8],
        last: &[u8],
        location: GeoLocation,
        line: u32,
    ) -> Result<(), String> {
        let (from, to) = (address(first)?, address(last)?);
        let is_ordered = match (from, to, from.to_canonical(), to.to_canonical()) {
            (.., IpAddr::V4(from), IpAddr::V4(to)) => {
                let row = (from.to_bits(), to.to_bits(), location, line);
                self.v4.push(row);
                from <= to
            }
            (IpAddr::V6(from), IpAddr::V6(to), ..) => {
                let row = (from.to_bits(), to.to_bits(), location, line);
                self.v6.push(row);
                from <= to
            }
            _ => {
                return Err(format!(
                    "the range goes from {from} to {to}; both ends must be IPv4 or both IPv6"
                ));
            }
        };
        if is_ordered {
            return Ok(());
        }
        let (first, last) = (quoted(first), quoted(last));
        Err(format!(
            "the range ends before it starts; write {last} first, then {first}"
        ))
    }
}

/// Returns the lines that are not empty, with their numbers.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let lines = bytes.split(|byte| *byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    (1..).zip(lines).filter(|(_, line)| !line.is_empty())
}

fn fault(number: usize, why: String) -> DatabaseError {
    DatabaseError::Line { number, why }
}

fn columns(line: &[u8]) -> Result<usize, String> {
    let found = line.split(|byte| *byte == b'\t').count();
    match found {
        COUNTRIES => Ok(COUNTRIES),
        SYSTEMS.. => Ok(SYSTEMS),
        1 => Err(format!(
            "no columns; they are separated by tabs: {EXPECTED}"
        )),
        _ => Err(format!("{found} columns; a table has {EXPECTED}")),
    }
}

const EXPECTED: &str = "first address, last address, AS number, country, description, or only the first two and country";

fn address(cell: &[u8]) -> Result<IpAddr, String> {
    let read = |cell| {
        let text = std::str::from_utf8(cell).ok()?;
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().ok().map(Ipv4Addr::from_bits).map(IpAddr::V4);
        }
        text.parse().ok()
    };
    let help = "write `192.0.2.1`, `2001:db8::1` or an IPv4 address as a number";
    read(cell).ok_or_else(|| format!("{} is not an address; {help}", quoted(cell)))
}

fn system(cell: &[u8]) -> Result<u32, String> {
    if UNKNOWN.contains(&cell) {
        return Ok(0);
    }
    let text = std::str::from_utf8(cell).ok();
    let help = "write digits, and 0 if there is none";
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| format!("{} is not an AS number; {help}", quoted(cell)))
}

fn country(cell: &[u8]) -> Result<[u8; 2], String> {
    if UNKNOWN.contains(&cell) {
        return Ok([0; 2]);
    }
    match <[u8; 2]>::try_from(cell) {
        Ok(code @ [first, second])
            if first.is_ascii_alphabetic() && second.is_ascii_alphanumeric() =>
        {
            Ok(code.map(|byte| byte.to_ascii_uppercase()))
        }
        _ => Err(format!(
            "{} is not a country; write two letters, and `None` if there is none",
            quoted(cell)
        )),
    }
}

/// Quotes a cell, truncated to keep a message short.
fn quoted(cell: &[u8]) -> String {
    const SHOWN: usize = 40;
    let text = String::from_utf8_lossy(cell);
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("`{}…`", text.get(..at).unwrap_or_default()),
        None => format!("`{text}`"),
    }
}
