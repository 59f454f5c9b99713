//! Recognizes framing headers, and follows the value of `Transfer-Encoding` to its last coding.

const CHUNKED: &[u8] = b"chunked";

/// The state of the last transfer coding of a list: the number of matching letters of `chunked`, or one of
/// these.
pub(super) type Coding = u8;
pub(super) const NO_LETTER: Coding = 0;
pub(super) const CHUNKED_WHOLE: Coding = 7;
pub(super) const CHUNKED_AND_SPACE: Coding = 8;
const OTHER_CODING: Coding = 9;

/// Returns the state of a transfer coding after one more byte.
pub(super) fn next_coding(coding: Coding, byte: u8) -> Coding {
    match (coding, byte) {
        (_, b',') => NO_LETTER,
        (NO_LETTER, b' ' | b'\t') => NO_LETTER,
        (CHUNKED_WHOLE | CHUNKED_AND_SPACE, b' ' | b'\t') => CHUNKED_AND_SPACE,
        (letters, _) => match CHUNKED.get(usize::from(letters)) {
            Some(letter) if letter.eq_ignore_ascii_case(&byte) => letters + 1,
            _ => OTHER_CODING,
        },
    }
}

/// Returns whether a line may be a framing header or the empty line.
pub(super) const fn is_framing_header(line: &[u8]) -> bool {
    match line {
        [first, ..] => matches!(first, b'\r' | b'\n' | b'c' | b'C' | b't' | b'T'),
        [] => true,
    }
}
