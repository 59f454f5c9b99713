//! One connection to a gateway, for more than one request.

use std::io::{self, Read, Write};

use super::Answer;

/// A connection with what was read of it and not used yet.
pub struct Wire {
    stream: Box<dyn Stream>,
    unused: Vec<u8>,
}

trait Stream: Read + Write + Send {}

impl<S: Read + Write + Send> Stream for S {}

impl Wire {
    /// Over a stream that ends a read that lasts for ever.
    pub fn new(stream: impl Read + Write + Send + 'static) -> Self {
        Self {
            stream: Box::new(stream),
            unused: Vec::new(),
        }
    }

    /// Sends bytes as they are.
    #[track_caller]
    pub fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).unwrap();
    }

    /// Sends bytes to a gateway that may have closed.
    pub fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// Sends a GET and gives its answer; the connection stays.
    #[track_caller]
    pub fn get(&mut self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: example.com\r\n\r\n").as_bytes());
        self.answer()
    }

    /// The next answer, whose length is known or which has no body.
    #[track_caller]
    pub fn answer(&mut self) -> Answer {
        let head = self.head();
        let mut answer = Answer::parse(&head);
        let length = answer.header("content-length");
        let length = match answer.status {
            100..200 | 204 | 304 => 0,
            _ => length.map_or(0, |l| l.parse().unwrap()),
        };
        answer.body = self.exactly(length);
        answer
    }

    /// The bytes of the next head, unless it ends before.
    pub fn try_head(&mut self) -> Option<Vec<u8>> {
        loop {
            let end = self.unused.windows(4).position(|w| w == b"\r\n\r\n");
            if let Some(end) = end {
                return Some(self.unused.drain(..end + 4).collect());
            }
            if self.read() == 0 {
                return None;
            }
        }
    }

    /// The bytes of the next head.
    #[track_caller]
    pub fn head(&mut self) -> Vec<u8> {
        let head = self.try_head();
        head.unwrap_or_else(|| panic!("it ended after {:?}", self.unused))
    }

    /// So many bytes.
    #[track_caller]
    pub fn exactly(&mut self, length: usize) -> Vec<u8> {
        let bytes = self.try_exactly(length);
        bytes.unwrap_or_else(|| panic!("it ended before {length} bytes"))
    }

    /// So many bytes, unless it ends before.
    pub fn try_exactly(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.unused.len() < length {
            if self.read() == 0 {
                return None;
            }
        }
        Some(self.unused.drain(..length).collect())
    }

    /// All that comes until the other side closes.
    pub fn rest(&mut self) -> Vec<u8> {
        while self.read() > 0 {}
        std::mem::take(&mut self.unused)
    }

    /// How many bytes came; 0: it is closed.
    fn read(&mut self) -> usize {
        let mut buffer = [0; 16 * 1024];
        let read = self.stream.read(&mut buffer);
        // A reset is as much an end as any other. Silence is not.
        let silent = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        assert!(
            !read.as_ref().is_err_and(silent),
            "neither bytes nor an end"
        );
        let read = read.unwrap_or(0);
        self.unused.extend_from_slice(&buffer[..read]);
        read
    }
}
