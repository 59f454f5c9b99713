//! How the values of a header that varies are built, so that a fresh one can be made: dates, and
//! runs of letters and digits between signs that stay. Values themselves are not kept.

use super::memory::Clients;
use super::runs::{Numbers, Run, are_alike, number_length, unit};
use super::{Dice, When};
use crate::clock::{HttpDate, Timestamp};

/// The most parts of a value.
const PARTS: usize = 24;
/// The most parts that vary.
const VARYING: usize = 8;
/// The longest word that is kept.
const WORD: usize = 16;
/// Signs that base64 and similar codings mix with letters and digits.
const MIXED_IN: &[u8] = b"+/_-~";

/// How the values of a header are built.
#[derive(Debug, Default)]
pub(super) struct Pattern {
    form: Form,
    /// How many values were seen.
    pub(super) seen: u32,
    pub(super) clients: Clients,
}

#[derive(Debug, Default)]
enum Form {
    /// No value was seen yet.
    #[default]
    None,
    /// A date: its distance from the time of its response, in seconds.
    Date(Numbers),
    /// Parts, in order.
    Parts(Vec<Part>),
    /// Parts in whose runs [`MIXED_IN`] signs are letters too.
    MixedParts(Vec<Part>),
    /// Anything else, which is never made.
    Free,
}

#[derive(Debug)]
enum Part {
    /// Signs, the same in every value.
    Signs(Box<str>),
    /// A run that was the same in every value so far.
    Word(Box<str>),
    Run(Box<Run>),
}

/// A part of a value that was seen.
#[derive(Clone, Copy)]
enum Piece<'a> {
    Signs(&'a str),
    /// Letters and digits, or a decimal.
    Run(&'a str),
}

// === impl Pattern ===

impl Pattern {
    /// Learns a value. Nothing of a `secret` is kept as it is.
    pub(super) fn learn(&mut self, value: &[u8], secret: bool, when: When) {
        self.seen = self.seen.saturating_add(1);
        let text = str::from_utf8(value).ok().filter(|text| text.is_ascii());
        let form = std::mem::take(&mut self.form);
        self.form = match (form, text) {
            (_, None) | (Form::Free, _) => Form::Free,
            (Form::None, Some(text)) => Form::first(text, secret, when),
            (Form::Date(offsets), Some(text)) => date(offsets, text, when),
            (Form::Parts(parts), Some(text)) => match merge(parts, pieces(text, false), when) {
                Some(parts) => Form::Parts(parts),
                None => Form::first_mixed(text, secret, when),
            },
            (Form::MixedParts(parts), Some(text)) => {
                merge(parts, pieces(text, true), when).map_or(Form::Free, Form::MixedParts)
            }
        };
    }

    /// A value like those that were seen. `None` if they have no form.
    pub(super) fn make(&self, when: When, dice: &mut Dice) -> Option<String> {
        let mut out = String::new();
        match &self.form {
            Form::None | Form::Free => return None,
            Form::Date(offsets) => {
                let offset = offsets.draw(when, dice) as i64;
                let secs = (when.now.as_secs() as i64).saturating_add(offset);
                out = HttpDate(Timestamp::from_secs(secs.max(0) as u64)).to_string();
            }
            Form::Parts(parts) | Form::MixedParts(parts) => {
                for part in parts {
                    match part {
                        Part::Signs(text) | Part::Word(text) => out.push_str(text),
                        Part::Run(run) => run.write(&mut out, when, dice),
                    }
                }
            }
        }
        Some(out)
    }
}

// === impl Form ===

impl Form {
    fn first(text: &str, secret: bool, when: When) -> Self {
        if HttpDate::parse(text.as_bytes()).is_some() {
            return date(Numbers::default(), text, when);
        }
        match parts(pieces(text, false), secret, when) {
            Some(parts) => Form::Parts(parts),
            None => Form::first_mixed(text, secret, when),
        }
    }

    /// What was seen in another form is forgotten.
    fn first_mixed(text: &str, secret: bool, when: When) -> Self {
        parts(pieces(text, true), secret, when).map_or(Form::Free, Form::MixedParts)
    }
}

/// The parts of the first value. `None` if there are too many.
fn parts(pieces: Vec<Piece<'_>>, secret: bool, when: When) -> Option<Vec<Part>> {
    let part = |piece| match piece {
        Piece::Run(text) if text.len() > WORD || secret => {
            Part::Run(Box::new(Run::of([text], when)))
        }
        Piece::Run(text) => Part::Word(text.into()),
        Piece::Signs(text) => Part::Signs(text.into()),
    };
    let few = pieces.len() <= PARTS;
    let parts: Vec<Part> = pieces.into_iter().take(PARTS).map(part).collect();
    (few && is_worth_it(&parts)).then_some(parts)
}

/// A value of which too many parts vary is not worth its memory.
fn is_worth_it(parts: &[Part]) -> bool {
    let varying = parts.iter().filter(|part| matches!(part, Part::Run(_)));
    varying.count() <= VARYING
}

fn date(mut offsets: Numbers, text: &str, when: When) -> Form {
    let Some(HttpDate(date)) = HttpDate::parse(text.as_bytes()) else {
        return Form::Free;
    };
    offsets.keep(date.as_secs() as f64 - when.now.as_secs() as f64, when);
    Form::Date(offsets)
}

/// Learns another value of the same parts. `None` if its parts differ, or too many vary.
fn merge(mut parts: Vec<Part>, pieces: Vec<Piece<'_>>, when: When) -> Option<Vec<Part>> {
    let fits = |(part, piece): (&Part, &Piece<'_>)| part.fits(*piece);
    if pieces.len() != parts.len() || !parts.iter().zip(&pieces).all(fits) {
        return None;
    }
    for (part, piece) in parts.iter_mut().zip(pieces) {
        if let Piece::Run(text) = piece {
            part.learn(text, when);
        }
    }
    is_worth_it(&parts).then_some(parts)
}

// === impl Part ===

impl Part {
    fn fits(&self, piece: Piece<'_>) -> bool {
        match (self, piece) {
            (Part::Signs(own), Piece::Signs(text)) => **own == *text,
            (Part::Word(own), Piece::Run(text)) => **own == *text || are_alike(own, text),
            (Part::Run(run), Piece::Run(text)) => run.fits(text),
            _ => false,
        }
    }

    fn learn(&mut self, text: &str, when: When) {
        match self {
            Part::Word(own) if **own != *text => {
                *self = Part::Run(Box::new(Run::of([&**own, text], when)));
            }
            Part::Run(run) => run.learn(text, when),
            Part::Word(_) | Part::Signs(_) => {}
        }
    }
}

/// Splits a value into its parts. If `mixed`, [`MIXED_IN`] signs count as letters and numbers are not split off.
fn pieces(text: &str, mixed: bool) -> Vec<Piece<'_>> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || (mixed && MIXED_IN.contains(&byte));
    let mut found = Vec::new();
    let (mut rest, mut after_point, mut after_number) = (text, false, false);
    while let Some(first) = rest.bytes().next() {
        let is_run = is_letter(first);
        let same = || rest.bytes().position(|byte| is_letter(byte) != is_run);
        let unit = unit(rest).filter(|_| after_number).map(str::len);
        let number = || number_length(rest, after_point).filter(|_| !mixed);
        let length = unit.or_else(number).or_else(same).unwrap_or(rest.len());
        let (piece, tail) = rest.split_at_checked(length).unwrap_or((rest, ""));
        found.push(match is_run && unit.is_none() {
            true => Piece::Run(piece),
            false => Piece::Signs(piece),
        });
        after_number = first.is_ascii_digit() && unit.is_none() && !mixed;
        after_point = piece.ends_with('.');
        rest = tail;
    }
    found
}
