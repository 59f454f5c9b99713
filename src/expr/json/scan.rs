//! A walk over JSON text that finds where values end and that they are valid.

/// Deeper texts are not read.
const MAX_DEPTH: u32 = 64;

/// Where the walk is.
#[derive(Clone, Debug)]
pub(super) struct Scan<'t> {
    text: &'t [u8],
    at: usize,
}

/// The containers around a value: a bit each, set for an object.
#[derive(Clone, Copy, Default)]
struct Nest {
    objects: u64,
    depth: u32,
}

// === impl Scan ===

impl<'t> Scan<'t> {
    pub(super) fn new(text: &'t [u8]) -> Scan<'t> {
        Scan { text, at: 0 }
    }

    /// The text's one value, without the space around it.
    pub(super) fn whole(&mut self) -> Option<&'t [u8]> {
        let value = self.value()?;
        self.space();
        (self.at == self.text.len()).then_some(value)
    }

    /// The next member of a valid object: its name between the quotes, and its value.
    pub(super) fn member(&mut self) -> Option<(&'t [u8], &'t [u8])> {
        self.next_in_container(b'}')?;
        let start = self.at + 1;
        self.string()?;
        let name = self.text.get(start..self.at - 1)?;
        self.space();
        self.expect(b':')?;
        Some((name, self.value()?))
    }

    /// The next element of a valid array.
    pub(super) fn element(&mut self) -> Option<&'t [u8]> {
        self.next_in_container(b']')?;
        self.value()
    }

    /// Steps over the opening bracket or a comma; `None` at the closing one.
    fn next_in_container(&mut self, close: u8) -> Option<()> {
        self.space();
        self.at += 1;
        self.space();
        (self.peek()? != close).then_some(())
    }

    /// The next value, which may hold others. A loop, not a recursion.
    fn value(&mut self) -> Option<&'t [u8]> {
        self.space();
        let start = self.at;
        let mut nest = Nest::default();
        loop {
            let opened = self.begin(&mut nest)?;
            if !opened && self.close(&mut nest)? {
                return self.text.get(start..self.at);
            }
        }
    }

    /// Reads a scalar, an empty container or the opening of another. `true`: it opened one, and
    /// its first value is next.
    fn begin(&mut self, nest: &mut Nest) -> Option<bool> {
        self.space();
        match self.peek()? {
            open @ (b'{' | b'[') => {
                let close = if open == b'{' { b'}' } else { b']' };
                self.at += 1;
                self.space();
                if self.peek()? == close {
                    self.at += 1;
                    return Some(false);
                }
                nest.enter(open == b'{')?;
                if open == b'{' {
                    self.name()?;
                }
                return Some(true);
            }
            b'"' => self.string()?,
            b't' => self.word(b"true")?,
            b'f' => self.word(b"false")?,
            b'n' => self.word(b"null")?,
            _ => self.number()?,
        }
        Some(false)
    }

    /// After a value: steps over a comma, or out of the containers that end here. `true`: the
    /// outermost value has ended.
    fn close(&mut self, nest: &mut Nest) -> Option<bool> {
        while let Some(object) = nest.inner() {
            self.space();
            match (self.peek()?, object) {
                (b',', _) => {
                    self.at += 1;
                    self.space();
                    if object {
                        self.name()?;
                    }
                    return Some(false);
                }
                (b'}', true) | (b']', false) => {
                    self.at += 1;
                    nest.leave();
                }
                _ => return None,
            }
        }
        Some(true)
    }

    fn name(&mut self) -> Option<()> {
        self.string()?;
        self.space();
        self.expect(b':')
    }

    fn string(&mut self) -> Option<()> {
        self.expect(b'"')?;
        loop {
            let byte = self.peek()?;
            self.at += 1;
            match byte {
                b'"' => return Some(()),
                b'\\' => self.escape()?,
                0..0x20 => return None,
                _ => {}
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        let letter = self.peek()?;
        self.at += 1;
        match letter {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                let digits = self.text.get(self.at..self.at + 4)?;
                self.at += 4;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(())
            }
            _ => None,
        }
    }

    /// RFC 8259 §6.
    fn number(&mut self) -> Option<()> {
        self.take(b'-');
        match self.peek()? {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        (count > 0).then_some(())
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        let found = self.text.get(self.at..)?.starts_with(word);
        self.at += word.len();
        found.then_some(())
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.take(byte).then_some(())
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }
}

// === impl Nest ===

impl Nest {
    fn enter(&mut self, object: bool) -> Option<()> {
        if self.depth == MAX_DEPTH {
            return None;
        }
        self.objects = self.objects << 1 | u64::from(object);
        self.depth += 1;
        Some(())
    }

    fn leave(&mut self) {
        self.objects >>= 1;
        self.depth -= 1;
    }

    /// Whether the innermost container is an object; `None`: there is none.
    fn inner(self) -> Option<bool> {
        (self.depth > 0).then_some(self.objects & 1 == 1)
    }
}
