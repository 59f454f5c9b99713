//! A body larger than any memory: what goes through is not kept.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use crate::harness::{Origin, Process};

const GIB: u64 = 1 << 30;
const MOST_KIB: u64 = 64 << 10;
const PIECE: usize = 1 << 20;

const CONFIG: &str = r#"
[server]
workers = 2
[log]
access = "off"
[[listeners]]
address = "127.0.0.1:0"
[[upstreams]]
name = "app"
servers = ["{origin}"]
response_timeout = "120s"
[[routes]]
upstream = "app"
"#;

/// Takes what a request brings, then sends as much.
fn echoing_size() -> Origin {
    Origin::scripted(|mut stream| {
        while let Some(length) = read_head(&mut stream) {
            swallow(&mut stream, length);
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            pour(&mut stream, length);
        }
    })
}

/// The length that the head on `stream` declares; `None` at its end.
fn read_head(stream: &mut TcpStream) -> Option<u64> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let (_, rest) = head.split_once("content-length: ").unwrap();
    Some(rest.split("\r\n").next().unwrap().parse().unwrap())
}

fn swallow(stream: &mut TcpStream, mut left: u64) {
    let mut piece = vec![0; PIECE];
    while left > 0 {
        let read = stream.read(&mut piece).unwrap();
        assert!(read > 0, "it ended {left} bytes too soon");
        left -= read as u64;
    }
}

fn pour(stream: &mut TcpStream, length: u64) {
    let piece = vec![b'x'; PIECE];
    for _ in 0..length / PIECE as u64 {
        stream.write_all(&piece).unwrap();
    }
}

/// A figure of a process, in KiB.
fn memory(process: &Process, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_gibibyte_is_streamed_in_each_direction_with_little_memory() {
    let origin = echoing_size();
    let process = Process::run(&CONFIG.replace("{origin}", &origin.address.to_string()));
    let mut stream = TcpStream::connect(process.address(0)).unwrap();
    let exchange = |stream: &mut TcpStream, length: u64| {
        let head = format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        pour(stream, length);
        assert_eq!(read_head(stream), Some(length));
        swallow(stream, length);
    };
    exchange(&mut stream, PIECE as u64);
    let before = memory(&process, "VmRSS:");
    exchange(&mut stream, GIB);
    let most = memory(&process, "VmHWM:");
    // The kernel's figures may lag behind each other by some pages.
    let grown = most.saturating_sub(before);
    assert!(grown < MOST_KIB, "it grew by {grown} KiB");
}
