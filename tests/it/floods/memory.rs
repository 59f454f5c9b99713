//! Many connections that hold as much as they are allowed to.

use super::*;
use crate::h2spec::{head, none};
use crate::harness::{Frames, Wire, block, next_frame};

const CONNECTIONS: usize = 16;
const STREAMS: u32 = 128;

/// Opens a connection on which `frames` is said of each stream.
fn open(site: &Site, first: &Frames, frames: impl Fn(u32) -> Frames) -> Wire {
    let mut wire = Client::plain(site.process.address(0)).connect();
    first.open(&mut wire);
    for stream in (0..STREAMS).map(|n| 2 * n + 1) {
        if wire.try_send(&frames(stream).0).is_err() {
            break;
        }
    }
    wire
}

/// Reads frames until one of this type has come so many times.
fn until(wire: &mut Wire, kind: u8, count: usize) {
    let mut left = count;
    while left > 0 {
        let frame = next_frame(wire).expect("it is still open");
        left -= usize::from(frame.0 == kind);
    }
}

#[test]
fn responses_to_zero_windows_use_little_memory() {
    let large = Origin::answering(|seen| {
        let body = if seen.line.contains("/honest") {
            2
        } else {
            1 << 20
        };
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {body}\r\n\r\n");
        [head.into_bytes(), vec![b'x'; body]].concat()
    });
    let site = Site::with(large, "");
    let closed = none().frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]);
    let (wires, mib) = site.under(|| {
        let get = |stream| none().frame(1, 0x5, stream, &head("GET"));
        let mut wires: Vec<_> = (0..8).map(|_| open(&site, &closed, get)).collect();
        wires
            .iter_mut()
            .for_each(|wire| until(wire, 1, STREAMS as usize));
        wires
    });
    println!(
        "zero windows: {mib} MiB for {} answers of 1 MiB",
        8 * STREAMS
    );
    // 1,024 answers of 1 MiB, of which a buffer each was read.
    assert!(mib < 64, "{mib} MiB");
    drop(wires);
}

#[test]
fn heads_of_the_largest_size_bound_the_memory() {
    let site = Site::open();
    let large = |stream| {
        let value = "v".repeat(300);
        let fields: Vec<_> = (0..90).map(|_| ("x-large", value.as_str())).collect();
        let block = [held(), block(&fields)].concat();
        let (first, rest) = block.split_at(16_000);
        none()
            .frame(1, 0x1, stream, first)
            .frame(9, 0x4, stream, rest)
    };
    let (wires, mib) = site.under(|| -> Vec<_> {
        let all = (0..CONNECTIONS).map(|_| open(&site, &none(), large));
        let mut wires: Vec<_> = all.collect();
        for wire in &mut wires {
            wire.send(&none().frame(6, 0, 0, b"all read").0);
            until(wire, 6, 1);
        }
        wires
    });
    let heads = CONNECTIONS as u64 * u64::from(STREAMS);
    println!("large heads: {mib} MiB for {heads} of 30 KiB");
    assert_eq!(site.metric("lockgate_held_requests"), heads);
    assert!(mib * 1024 < heads * 96, "{mib} MiB");
    drop(wires);
}

/// The head of a request that is held for a minute.
fn held() -> Vec<u8> {
    block(&[
        (":method", "GET"),
        (":scheme", "http"),
        (":authority", "a.example"),
        (":path", "/held"),
    ])
}
