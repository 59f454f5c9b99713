//! What a terminal shows after some output: the few sequences (ECMA-48) that the terminal view writes.

/// The characters of a screen.
pub struct TerminalScreen {
    cells: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// Bytes that are not a whole character or sequence yet.
    rest: Vec<u8>,
    /// Whether the alternate screen is shown.
    pub is_alternate: bool,
    pub is_cursor_shown: bool,
}

impl TerminalScreen {
    pub fn new(width: u16, height: u16) -> Self {
        Self {
            cells: vec![vec![' '; width.into()]; height.into()],
            row: 0,
            column: 0,
            rest: Vec::new(),
            is_alternate: false,
            is_cursor_shown: true,
        }
    }

    pub fn resize(&mut self, width: u16, height: u16) {
        self.cells = vec![vec![' '; width.into()]; height.into()];
    }

    /// The lines, without the spaces at their ends.
    pub fn text(&self) -> String {
        let lines = self.cells.iter();
        let lines = lines.map(|line| line.iter().collect::<String>().trim_end().to_owned());
        lines.collect::<Vec<_>>().join("\n")
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let rest = std::mem::take(&mut self.rest);
        let whole = match std::str::from_utf8(&rest) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&rest[..error.valid_up_to()]).unwrap(),
        };
        let mut left = whole;
        while let Some(c) = left.chars().next() {
            let Some(used) = self.take(c, left) else {
                break;
            };
            left = &left[used..];
        }
        self.rest = rest[whole.len() - left.len()..].to_vec();
    }

    /// Returns the length of what was taken. `None` if a sequence is not complete.
    fn take(&mut self, c: char, text: &str) -> Option<usize> {
        match c {
            '\u{1b}' => return self.sequence(text),
            '\r' => self.column = 0,
            '\n' => self.row += 1,
            c if c.is_control() => {}
            c => {
                let line = self.cells.get_mut(self.row);
                if let Some(cell) = line.and_then(|line| line.get_mut(self.column)) {
                    *cell = c;
                }
                self.column += 1;
            }
        }
        Some(c.len_utf8())
    }

    fn sequence(&mut self, text: &str) -> Option<usize> {
        let Some(body) = text.strip_prefix("\u{1b}[") else {
            // Two characters, such as a change of the keypad.
            return (text.len() > 1).then_some(2);
        };
        let end = body.find(|c: char| ('@'..='~').contains(&c))?;
        let (parameters, command) = (&body[..end], &body[end..=end]);
        let mut numbers = parameters.split(';').map(|part| part.parse().unwrap_or(1));
        match (command, parameters) {
            ("H", _) => {
                self.row = numbers.next().unwrap_or(1_usize).saturating_sub(1);
                self.column = numbers.next().unwrap_or(1_usize).saturating_sub(1);
            }
            ("J", _) => {
                for cell in self.cells.iter_mut().flatten() {
                    *cell = ' ';
                }
            }
            ("h" | "l", "?1049") => self.is_alternate = command == "h",
            ("h" | "l", "?25") => self.is_cursor_shown = command == "h",
            _ => {}
        }
        Some(2 + end + 1)
    }
}
