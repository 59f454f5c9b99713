//! The pattern of a header's varying values, from which new ones are generated: dates, and runs of letters and
//! digits between constant signs. Values themselves are not kept.

use super::learned_responses::SeenClients;
use super::runs::{RunPattern, SeenNumbers, are_alike, number_length, unit};
use super::{Dice, SendSchedule};
use crate::clock::{HttpDate, Timestamp};

/// The maximum number of parts of a value.
const PARTS: usize = 24;
/// The maximum number of parts that vary.
const VARYING: usize = 8;
/// The maximum length of a kept word.
const WORD: usize = 16;
/// Signs that base64 and similar encodings mix with letters and digits.
const MIXED_IN: &[u8] = b"+/_-~";

/// The pattern of a header's values.
#[derive(Debug, Default)]
pub(super) struct ValuePattern {
    form: PatternForm,
    /// The number of observed values.
    pub(super) seen: u32,
    pub(super) clients: SeenClients,
}

#[derive(Debug, Default)]
enum PatternForm {
    /// No value was observed yet.
    #[default]
    None,
    /// A date: its distance from the time of its response, in seconds.
    Date(SeenNumbers),
    /// Parts, in order.
    Parts(Vec<PatternPart>),
    /// Parts in which [`MIXED_IN`] signs count as letters.
    MixedParts(Vec<PatternPart>),
    /// No pattern; a value is never generated.
    Free,
}

#[derive(Debug)]
enum PatternPart {
    /// Signs, equal in every value.
    Signs(Box<str>),
    /// A run that was equal in every value so far.
    Word(Box<str>),
    Run(Box<RunPattern>),
}

/// A part of an observed value.
#[derive(Clone, Copy)]
enum ValuePiece<'a> {
    Signs(&'a str),
    /// Letters and digits, or a decimal.
    Run(&'a str),
}

// === impl ValuePattern ===

impl ValuePattern {
    /// Learns a value. No part of a `secret` is kept verbatim.
    pub(super) fn learn(&mut self, value: &[u8], secret: bool, when: SendSchedule) {
        self.seen = self.seen.saturating_add(1);
        let text = str::from_utf8(value).ok().filter(|text| text.is_ascii());
        let form = std::mem::take(&mut self.form);
        self.form = match (form, text) {
            (_, None) | (PatternForm::Free, _) => PatternForm::Free,
            (PatternForm::None, Some(text)) => PatternForm::first(text, secret, when),
            (PatternForm::Date(offsets), Some(text)) => date(offsets, text, when),
            (PatternForm::Parts(parts), Some(text)) => {
                match merge(parts, pieces(text, false), when) {
                    Some(parts) => PatternForm::Parts(parts),
                    None => PatternForm::first_mixed(text, secret, when),
                }
            }
            (PatternForm::MixedParts(parts), Some(text)) => merge(parts, pieces(text, true), when)
                .map_or(PatternForm::Free, PatternForm::MixedParts),
        };
    }

    /// Generates a value. `None` if the observed ones have no pattern.
    pub(super) fn make(&self, when: SendSchedule, dice: &mut Dice) -> Option<String> {
        let mut out = String::new();
        match &self.form {
            PatternForm::None | PatternForm::Free => return None,
            PatternForm::Date(offsets) => {
                let offset = offsets.draw(when, dice) as i64;
                let secs = (when.now.as_secs() as i64).saturating_add(offset);
                out = HttpDate(Timestamp::from_secs(secs.max(0) as u64)).to_string();
            }
            PatternForm::Parts(parts) | PatternForm::MixedParts(parts) => {
                for part in parts {
                    match part {
                        PatternPart::Signs(text) | PatternPart::Word(text) => out.push_str(text),
                        PatternPart::Run(run) => run.write(&mut out, when, dice),
                    }
                }
            }
        }
        Some(out)
    }
}

// === impl PatternForm ===

impl PatternForm {
    fn first(text: &str, secret: bool, when: SendSchedule) -> Self {
        if HttpDate::parse(text.as_bytes()).is_some() {
            return date(SeenNumbers::default(), text, when);
        }
        match parts(pieces(text, false), secret, when) {
            Some(parts) => PatternForm::Parts(parts),
            None => PatternForm::first_mixed(text, secret, when),
        }
    }

    /// Starts a pattern of mixed parts; discards what was learned in another form.
    fn first_mixed(text: &str, secret: bool, when: SendSchedule) -> Self {
        parts(pieces(text, true), secret, when).map_or(PatternForm::Free, PatternForm::MixedParts)
    }
}

/// Returns the parts of the first value. `None` if there are too many.
fn parts(
    pieces: Vec<ValuePiece<'_>>,
    secret: bool,
    when: SendSchedule,
) -> Option<Vec<PatternPart>> {
    let part = |piece| match piece {
        ValuePiece::Run(text) if text.len() > WORD || secret => {
            PatternPart::Run(Box::new(RunPattern::of([text], when)))
        }
        ValuePiece::Run(text) => PatternPart::Word(text.into()),
        ValuePiece::Signs(text) => PatternPart::Signs(text.into()),
    };
    let few = pieces.len() <= PARTS;
    let parts: Vec<PatternPart> = pieces.into_iter().take(PARTS).map(part).collect();
    (few && is_worth_it(&parts)).then_some(parts)
}

/// Returns whether the parts are worth their memory: not too many of them vary.
fn is_worth_it(parts: &[PatternPart]) -> bool {
    let varying = parts
        .iter()
        .filter(|part| matches!(part, PatternPart::Run(_)));
    varying.count() <= VARYING
}

fn date(mut offsets: SeenNumbers, text: &str, when: SendSchedule) -> PatternForm {
    let Some(HttpDate(date)) = HttpDate::parse(text.as_bytes()) else {
        return PatternForm::Free;
    };
    offsets.keep(date.as_secs() as f64 - when.now.as_secs() as f64, when);
    PatternForm::Date(offsets)
}

/// Learns another value with matching parts. `None` if its parts differ, or too many vary.
fn merge(
    mut parts: Vec<PatternPart>,
    pieces: Vec<ValuePiece<'_>>,
    when: SendSchedule,
) -> Option<Vec<PatternPart>> {
    let fits = |(part, piece): (&PatternPart, &ValuePiece<'_>)| part.fits(*piece);
    if pieces.len() != parts.len() || !parts.iter().zip(&pieces).all(fits) {
        return None;
    }
    for (part, piece) in parts.iter_mut().zip(pieces) {
        if let ValuePiece::Run(text) = piece {
            part.learn(text, when);
        }
    }
    is_worth_it(&parts).then_some(parts)
}

// === impl PatternPart ===

impl PatternPart {
    fn fits(&self, piece: ValuePiece<'_>) -> bool {
        match (self, piece) {
            (PatternPart::Signs(own), ValuePiece::Signs(text)) => **own == *text,
            (PatternPart::Word(own), ValuePiece::Run(text)) => {
                **own == *text || are_alike(own, text)
            }
            (PatternPart::Run(run), ValuePiece::Run(text)) => run.fits(text),
            _ => false,
        }
    }

    fn learn(&mut self, text: &str, when: SendSchedule) {
        match self {
            PatternPart::Word(own) if **own != *text => {
                *self = PatternPart::Run(Box::new(RunPattern::of([&**own, text], when)));
            }
            PatternPart::Run(run) => run.learn(text, when),
            PatternPart::Word(_) | PatternPart::Signs(_) => {}
        }
    }
}

/// Splits a value into its parts. If `mixed`, [`MIXED_IN`] signs count as letters and numbers are not split off.
fn pieces(text: &str, mixed: bool) -> Vec<ValuePiece<'_>> {
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
        found.push(if is_run && unit.is_none() {
            ValuePiece::Run(piece)
        } else {
            ValuePiece::Signs(piece)
        });
        after_number = first.is_ascii_digit() && unit.is_none() && !mixed;
        after_point = piece.ends_with('.');
        rest = tail;
    }
    found
}
