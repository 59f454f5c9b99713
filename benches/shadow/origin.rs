//! An origin like many: a few milliseconds, sometimes many; an id, an entity tag and a date in each
//! answer, and how long it took.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lockgate::clock::{Clock, HttpDate, Rfc3339};

use super::dice::Dice;

pub struct Origin {
    pub address: SocketAddr,
    seen: Arc<AtomicUsize>,
}

impl Origin {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(AtomicUsize::new(0));
        let (count, seeds) = (seen.clone(), AtomicU64::new(1000));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let count = count.clone();
                let dice = Dice::new(seeds.fetch_add(1, Ordering::Relaxed));
                thread::spawn(move || serve(stream, &count, dice));
            }
        });
        Self { address, seen }
    }

    /// No shadowed request came this far.
    pub fn must_have_seen(&self, count: usize) {
        assert_eq!(self.seen.load(Ordering::Relaxed), count);
    }
}

fn serve(stream: TcpStream, seen: &AtomicUsize, mut dice: Dice) {
    stream.set_nodelay(true).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let began = Instant::now();
        let chunked = line.contains("/chunked");
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).unwrap();
        }
        seen.fetch_add(1, Ordering::Relaxed);
        thread::sleep(work(&mut dice));
        let written = match chunked {
            true => in_chunks(&mut writer, began, &mut dice),
            false => writer.write_all(&whole(began, &mut dice)),
        };
        if written.is_err() {
            return;
        }
    }
}

/// Mostly a few milliseconds; one in eight asks a slow database, one in thirty a slower one.
fn work(dice: &mut Dice) -> Duration {
    let micros = match dice.below(240) {
        0..8 => 20_000.0 * (0.5 * dice.normal()).exp(),
        8..38 => 8_000.0 * (0.2 * dice.normal()).exp(),
        _ => 2_000.0 * (0.35 * dice.normal()).exp(),
    };
    Duration::from_micros(micros as u64)
}

fn head(framing: &str, began: Instant, dice: &mut Dice) -> String {
    let date = HttpDate(Clock::System.now());
    let (a, b) = (dice.throw(), dice.throw());
    let took = began.elapsed().as_secs_f64();
    format!(
        "HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: {date}\r\n\
         Content-Type: application/json; charset=utf-8\r\n{framing}\r\nConnection: keep-alive\r\n\
         X-Frame-Options: SAMEORIGIN\r\nVary: Accept-Encoding\r\nETag: W/\"{a:016x}{b:016x}\"\r\n\
         Cache-Control: max-age=0, private, must-revalidate\r\nX-Request-Id: {}\r\n\
         X-Runtime: {took:.6}\r\nStrict-Transport-Security: max-age=63072000\r\n\r\n",
        uuid(dice)
    )
}

fn body(dice: &mut Dice) -> String {
    let now = Rfc3339(Clock::System.now());
    format!("{{\"ok\":true,\"id\":\"{}\",\"at\":\"{now}\"}}", uuid(dice))
}

fn whole(began: Instant, dice: &mut Dice) -> Vec<u8> {
    let body = body(dice);
    let framing = format!("Content-Length: {}", body.len());
    (head(&framing, began, dice) + &body).into_bytes()
}

/// The head, then the body in two chunks while it is made.
fn in_chunks(writer: &mut TcpStream, began: Instant, dice: &mut Dice) -> std::io::Result<()> {
    let body = body(dice);
    let head = head("Transfer-Encoding: chunked", began, dice);
    writer.write_all(head.as_bytes())?;
    let (one, two) = body.split_at(body.len() / 2);
    for part in [one, two] {
        thread::sleep(Duration::from_micros(200 + dice.below(600) as u64));
        let last = if part == two { "0\r\n\r\n" } else { "" };
        let chunk = format!("{:x}\r\n{part}\r\n{last}", part.len());
        writer.write_all(chunk.as_bytes())?;
    }
    Ok(())
}

fn uuid(dice: &mut Dice) -> String {
    let (a, b) = (dice.throw(), dice.throw());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        a >> 32,
        a >> 16 & 0xffff,
        a & 0xfff,
        (b >> 48 & 0x3fff) | 0x8000,
        b & 0xffff_ffff_ffff
    )
}
