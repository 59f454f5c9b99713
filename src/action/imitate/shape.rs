//! One sequence of field names that answers come with, and what is known of each field.

use http::header::{CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::Seen;
use super::clients::Clients;
use super::field::{ENOUGH, Field};

/// Fields that an answer may have.
pub(super) const FIELDS: usize = 32;
/// Bytes of values that are kept.
const ROOM: usize = 8192;

/// Answers with the same field names in the same order.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) fields: Vec<Field>,
    /// Answers, of which older ones count less.
    pub(super) count: u32,
    answers: u32,
    clients: Clients,
}

// === impl Shape ===

impl Shape {
    pub(super) fn new(headers: &HeaderMap) -> Self {
        Self {
            fields: names(headers).map(Field::new).collect(),
            count: 0,
            answers: 0,
            clients: Clients::default(),
        }
    }

    /// Whether an answer with these fields is one of these.
    pub(super) fn is_of(&self, headers: &HeaderMap) -> bool {
        names(headers).eq(self.fields.iter().map(|field| &field.name))
    }

    /// Takes in an answer; `true`: there is a surprise in it.
    pub(super) fn learn(&mut self, seen: &Seen<'_>) -> bool {
        self.count += 1;
        self.answers = self.answers.saturating_add(1);
        self.clients.add(seen.client);
        let mut room = ROOM.saturating_sub(self.fields.iter().map(Field::kept).sum());
        let mut surprise = false;
        for (field, (_, value)) in self.fields.iter_mut().zip(entries(seen.headers)) {
            let before = field.kept();
            surprise |= field.learn(value, seen, room);
            room = room.saturating_sub(field.kept().saturating_sub(before));
        }
        surprise
    }

    /// Whether it was seen often enough to be imitated.
    pub(super) fn is_known(&self) -> bool {
        self.answers >= ENOUGH && self.clients.are_enough()
    }

    /// Whether it was seen so often that there is little more to learn.
    pub(super) fn is_well_known(&self) -> bool {
        self.is_known() && self.answers >= 2 * ENOUGH
    }

    /// The coding of its bodies; `None`: as they are.
    pub(super) fn coding(&self) -> Option<&[u8]> {
        let field = self.fields.iter().find(|f| f.name == CONTENT_ENCODING)?;
        Some(field.steady().map_or(b"", HeaderValue::as_bytes))
    }

    /// Whether the length of its bodies is not told beforehand.
    pub(super) fn is_streamed(&self) -> bool {
        !self.fields.iter().any(|field| field.name == CONTENT_LENGTH)
    }

    /// What it takes of memory.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.fields.iter().map(Field::bytes).sum::<usize>()
    }
}

/// The fields of an answer as they are sent: what concerns one connection is not of them.
pub(super) fn entries(headers: &HeaderMap) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
    headers.iter().filter(|(name, _)| **name != CONNECTION)
}

fn names(headers: &HeaderMap) -> impl Iterator<Item = &HeaderName> {
    entries(headers).map(|(name, _)| name)
}
