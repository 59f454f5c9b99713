//! How the values of a field that varies are built, so that a fresh one can be made: dates, numbers,
//! and runs of letters and digits between signs that stay. Values themselves are not kept.

use super::When;
use super::clients::Clients;
use super::decimals::{Decimal, Decimals, unit, with_unit};
use super::dice::Dice;
use super::numbers::Numbers;
use super::run::Run;
use crate::clock::{HttpDate, Timestamp};

/// Parts that a value may have.
const PARTS: usize = 24;
/// Parts that may vary.
const VARYING: usize = 8;
/// The longest word that is kept.
const WORD: usize = 16;
/// Signs that base64 and its kin mix with letters and digits.
const MIXED_IN: &[u8] = b"+/_-~";

/// How the values of a field are built.
#[derive(Debug, Default)]
pub(super) struct Pattern {
    form: Form,
    /// The values that were seen, and by whom.
    pub(super) seen: u32,
    pub(super) clients: Clients,
}

/// The ways to build a value.
#[derive(Debug, Default)]
enum Form {
    /// Nothing was seen.
    #[default]
    None,
    /// A date: so many seconds from now.
    Date(Numbers),
    /// Parts, in order.
    Parts(Vec<Part>),
    /// One run in which signs are mixed, between quotes or bare.
    Blob(Wrap, Box<Run>),
    /// None of these.
    Free,
}

#[derive(Debug)]
enum Part {
    /// The same in every value.
    Same(Box<str>),
    Run(Box<Run>),
    /// A number with a point.
    Decimal(Box<Decimals>),
}

/// What stands around a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wrap {
    before: &'static str,
    after: &'static str,
    /// `=` at its end.
    padding: u8,
}

/// A part of a value as it came.
enum Piece<'a> {
    Signs(&'a str),
    Run(&'a str),
    Decimal(Decimal),
}

// === impl Pattern ===

impl Pattern {
    /// Takes in a value. `secret`: nothing of it is kept as it is.
    pub(super) fn learn(&mut self, value: &[u8], secret: bool, when: When) {
        self.seen = self.seen.saturating_add(1);
        let text = str::from_utf8(value).ok().filter(|text| text.is_ascii());
        let form = std::mem::take(&mut self.form);
        self.form = match (form, text) {
            (_, None) | (Form::Free, _) => Form::Free,
            (Form::None, Some(text)) => Form::first(text, secret, when),
            (Form::Date(offsets), Some(text)) => date(offsets, text, when),
            (Form::Parts(parts), Some(text)) => {
                merge(parts, text, when).unwrap_or_else(|| blob(None, text, when))
            }
            (Form::Blob(wrap, run), Some(text)) => blob(Some((wrap, run)), text, when),
        };
    }

    /// A value like those that were seen; `None`: nobody knows how.
    pub(super) fn make(&self, when: When, dice: &mut Dice) -> Option<String> {
        let mut out = String::new();
        match &self.form {
            Form::None | Form::Free => return None,
            Form::Date(offsets) => {
                let secs = (when.now.as_secs() as i64).saturating_add(offsets.draw(when, dice));
                out = HttpDate(Timestamp::from_secs(secs.max(0) as u64)).to_string();
            }
            Form::Parts(parts) => {
                for part in parts {
                    part.make(&mut out, when, dice);
                }
            }
            Form::Blob(wrap, run) => {
                out.push_str(wrap.before);
                run.make(&mut out, when, dice);
                out.extend((0..wrap.padding).map(|_| '='));
                out.push_str(wrap.after);
            }
        }
        Some(out)
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.form {
                Form::None | Form::Free => 0,
                Form::Date(offsets) => offsets.bytes(),
                Form::Blob(_, run) => run.bytes(),
                Form::Parts(parts) => parts.iter().map(Part::bytes).sum(),
            }
    }
}

// === impl Form ===

impl Form {
    fn first(text: &str, secret: bool, when: When) -> Self {
        if HttpDate::parse(text.as_bytes()).is_some() {
            return date(Numbers::default(), text, when);
        }
        let pieces = pieces(text);
        if pieces.len() > PARTS {
            return blob(None, text, when);
        }
        let part = |piece| Part::new(piece, secret, when);
        Form::Parts(pieces.into_iter().map(part).collect()).checked()
    }

    /// Too much of it varies to be worth its room.
    fn checked(self) -> Self {
        let varying = match &self {
            Form::Parts(parts) => parts.iter().filter(|part| part.varies()).count(),
            _ => 0,
        };
        if varying > VARYING { Form::Free } else { self }
    }
}

fn date(mut offsets: Numbers, text: &str, when: When) -> Form {
    let Some(HttpDate(date)) = HttpDate::parse(text.as_bytes()) else {
        return Form::Free;
    };
    offsets.keep(date.as_secs() as i64 - when.now.as_secs() as i64, when);
    Form::Date(offsets)
}

/// The parts with another value taken in; `None`: it is built in another way.
fn merge(mut parts: Vec<Part>, text: &str, when: When) -> Option<Form> {
    let pieces = pieces(text);
    let fits = |(part, piece): (&Part, &Piece<'_>)| part.fits(piece);
    if pieces.len() != parts.len() || !parts.iter().zip(&pieces).all(fits) {
        return None;
    }
    for (part, piece) in parts.iter_mut().zip(pieces) {
        part.learn(piece, when);
    }
    Some(Form::Parts(parts).checked())
}

/// `text` as one run, with those before it; what came before in another form is forgotten.
fn blob(known: Option<(Wrap, Box<Run>)>, text: &str, when: When) -> Form {
    let (wrap, inner) = Wrap::open(text);
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || MIXED_IN.contains(byte);
    let (known_wrap, mut run) = known.unwrap_or_else(|| (wrap, Box::new(Run::new())));
    if known_wrap != wrap || inner.is_empty() || !inner.as_bytes().iter().all(is_letter) {
        return Form::Free;
    }
    run.learn(inner.as_bytes(), when);
    Form::Blob(wrap, run)
}

// === impl Wrap ===

impl Wrap {
    fn open(text: &str) -> (Self, &str) {
        let quoted = [("W/\"", "\""), ("\"", "\"")]
            .into_iter()
            .find_map(|(b, a)| {
                let inner = text.strip_prefix(b)?.strip_suffix(a)?;
                Some((b, a, inner))
            });
        let (before, after, inner) = quoted.unwrap_or(("", "", text));
        let bare = inner.trim_end_matches('=');
        let padding = u8::try_from(inner.len() - bare.len()).unwrap_or(u8::MAX);
        let wrap = Self {
            before,
            after,
            padding,
        };
        (wrap, bare)
    }
}

// === impl Part ===

impl Part {
    fn new(piece: Piece<'_>, secret: bool, when: When) -> Self {
        match piece {
            Piece::Signs(text) => Part::Same(text.into()),
            Piece::Run(text) if text.len() <= WORD && !secret => Part::Same(text.into()),
            Piece::Run(text) => Part::run([text], when),
            Piece::Decimal(decimal) => Part::decimals([decimal], when),
        }
    }

    fn run<'a>(texts: impl IntoIterator<Item = &'a str>, when: When) -> Self {
        let mut run = Run::new();
        for text in texts {
            run.learn(text.as_bytes(), when);
        }
        Part::Run(Box::new(run))
    }

    fn decimals(seen: impl IntoIterator<Item = Decimal>, when: When) -> Self {
        let mut decimals = Decimals::default();
        for decimal in seen {
            decimals.learn(decimal, when);
        }
        Part::Decimal(Box::new(decimals))
    }

    fn fits(&self, piece: &Piece<'_>) -> bool {
        match (self, piece) {
            (Part::Same(own), Piece::Signs(text)) => **own == **text,
            (Part::Same(own), Piece::Run(_)) => is_run(own),
            (Part::Run(_), Piece::Run(_)) => true,
            (Part::Decimal(_), Piece::Decimal(_)) => true,
            (Part::Same(own), Piece::Decimal(_)) => Decimal::whole(own).is_some(),
            (Part::Decimal(_), Piece::Run(text)) => Decimal::whole(text).is_some(),
            _ => false,
        }
    }

    fn learn(&mut self, piece: Piece<'_>, when: When) {
        match (&mut *self, piece) {
            (Part::Same(own), Piece::Run(text)) if **own != *text => {
                *self = Part::run([&**own, text], when);
            }
            (Part::Same(own), Piece::Decimal(decimal)) => {
                let whole = Decimal::whole(own);
                *self = Part::decimals(whole.into_iter().chain([decimal]), when);
            }
            (Part::Run(run), Piece::Run(text)) => run.learn(text.as_bytes(), when),
            (Part::Decimal(decimals), Piece::Decimal(decimal)) => decimals.learn(decimal, when),
            (Part::Decimal(decimals), Piece::Run(text)) => {
                if let Some(decimal) = Decimal::whole(text) {
                    decimals.learn(decimal, when);
                }
            }
            _ => {}
        }
    }

    fn make(&self, out: &mut String, when: When, dice: &mut Dice) {
        match self {
            Part::Same(text) => out.push_str(text),
            Part::Run(run) => run.make(out, when, dice),
            Part::Decimal(decimals) => decimals.make(out, when, dice),
        }
    }

    fn varies(&self) -> bool {
        !matches!(self, Part::Same(_))
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                Part::Same(text) => text.len(),
                Part::Run(run) => run.bytes(),
                Part::Decimal(decimals) => decimals.bytes(),
            }
    }
}

/// A value, taken apart.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let (mut rest, mut after_point, mut after_number) = (text, false, false);
    while !rest.is_empty() {
        let unit = unit(rest).filter(|_| after_number);
        let (length, piece) = match unit {
            Some(unit) => (unit.len(), Piece::Signs(unit)),
            None => next_piece(rest, after_point),
        };
        after_number = unit.is_none() && rest.starts_with(|first: char| first.is_ascii_digit());
        let (taken, tail) = rest.split_at_checked(length).unwrap_or((rest, ""));
        after_point = taken.ends_with('.');
        found.push(piece);
        rest = tail;
    }
    found
}

/// The piece at the beginning of `rest`, with its length.
fn next_piece(rest: &str, after_point: bool) -> (usize, Piece<'_>) {
    if let Some((length, decimal)) = Decimal::read(rest).filter(|_| !after_point) {
        return (length, Piece::Decimal(decimal));
    }
    let alphanumeric = rest.starts_with(|first: char| first.is_ascii_alphanumeric());
    let length = with_unit(rest).unwrap_or_else(|| same_kind(rest, alphanumeric));
    let piece = rest.get(..length).unwrap_or(rest);
    match alphanumeric {
        true => (length, Piece::Run(piece)),
        false => (length, Piece::Signs(piece)),
    }
}

/// How many bytes at the beginning are letters or digits, or are not.
fn same_kind(text: &str, alphanumeric: bool) -> usize {
    let other = |byte: u8| byte.is_ascii_alphanumeric() != alphanumeric;
    text.bytes().position(other).unwrap_or(text.len())
}

fn is_run(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
