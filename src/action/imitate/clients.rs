//! How many different clients had a thing: counted as far as it matters, as keyed hashes.

/// This many different clients are enough.
pub(super) const ENOUGH: usize = 10;

/// The clients that had a thing.
#[derive(Clone, Debug)]
pub(super) enum Clients {
    /// Their hashes.
    Few(Vec<u32>),
    /// Enough of them; who they were is forgotten.
    Enough,
}

// === impl Clients ===

impl Clients {
    pub(super) fn add(&mut self, client: u32) {
        let Clients::Few(known) = self else {
            return;
        };
        if !known.contains(&client) {
            known.push(client);
        }
        if known.len() >= ENOUGH {
            *self = Clients::Enough;
        }
    }

    pub(super) fn are_enough(&self) -> bool {
        matches!(self, Clients::Enough)
    }
}

impl Default for Clients {
    fn default() -> Self {
        Clients::Few(Vec::new())
    }
}
