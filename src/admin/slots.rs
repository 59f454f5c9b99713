//! Keeps the admin port available with a limit on its connections and reserved file descriptors.
//!
//! If all slots are taken, the oldest connection without a request is closed. A connection that has sent a
//! request is never closed for another.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::{AbortHandle, JoinSet};

/// The maximum number of open connections.
pub(super) const MAX_CONNECTIONS: usize = 64;

/// The connection slots, oldest first.
#[derive(Default)]
pub(super) struct ConnectionSlots {
    tasks: JoinSet<()>,
    taken: VecDeque<ConnectionSlot>,
}

/// One connection.
struct ConnectionSlot {
    task: AbortHandle,
    seen: RequestSeen,
}

/// Whether a connection has sent a request head.
pub(super) type RequestSeen = Arc<AtomicBool>;

// === impl ConnectionSlots ===

impl ConnectionSlots {
    /// Serves a connection if a slot is free.
    pub(super) fn take<F>(&mut self, serve: impl FnOnce(RequestSeen) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.taken.retain(|slot| !slot.task.is_finished());
        if self.taken.len() >= MAX_CONNECTIONS && !self.end_oldest_silent() {
            return;
        }
        let seen = RequestSeen::default();
        let task = self.tasks.spawn(serve(seen.clone()));
        self.taken.push_back(ConnectionSlot { task, seen });
    }

    fn end_oldest_silent(&mut self) -> bool {
        let is_silent = |slot: &ConnectionSlot| !slot.seen.load(Ordering::Relaxed);
        let silent = self.taken.iter().position(is_silent);
        let ended = silent.and_then(|number| self.taken.remove(number));
        ended.inspect(|slot| slot.task.abort()).is_some()
    }

    /// Waits until a connection has ended. Returns `None` if none is open.
    pub(super) async fn one_ended(&mut self) -> Option<()> {
        self.tasks.join_next().await.map(drop)
    }
}

/// The number of reserved descriptors.
const KEPT: usize = 16;

/// Descriptors that are reserved only to be closed.
#[derive(Default)]
pub(super) struct ReservedFds(Vec<OwnedFd>);

// === impl ReservedFds ===

impl ReservedFds {
    /// Reserves the missing descriptors, as far as the process limit allows.
    pub(super) fn fill(&mut self, of: impl AsFd) {
        while self.0.len() < KEPT {
            match of.as_fd().try_clone_to_owned() {
                Ok(spare) => self.0.push(spare),
                Err(_) => return,
            }
        }
    }

    /// Closes one reserved descriptor, so that its number is free. Returns `false` if none is left.
    pub(super) fn give(&mut self) -> bool {
        self.0.pop().is_some()
    }
}

#[cfg(test)]
mod unit {
    use tokio::sync::watch;
    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn a_connection_with_a_request_keeps_its_slot_until_it_ends() {
        let mut slots = ConnectionSlots::default();
        let (end, ends) = watch::channel(());
        let serve = |seen: RequestSeen| {
            let mut ends = ends.clone();
            async move {
                seen.store(true, Ordering::Relaxed);
                drop(ends.changed().await);
            }
        };
        for _ in 0..MAX_CONNECTIONS {
            slots.take(serve);
        }
        let is_silent = |slot: &ConnectionSlot| !slot.seen.load(Ordering::Relaxed);
        while slots.taken.iter().any(is_silent) {
            yield_now().await;
        }
        slots.take(|_| async { unreachable!("there is no free slot") });
        assert_eq!(
            (slots.taken.len(), slots.tasks.len()),
            (MAX_CONNECTIONS, MAX_CONNECTIONS)
        );
        drop(end);
        while slots.one_ended().await.is_some() {}
        slots.take(serve);
        assert_eq!(slots.taken.len(), 1);
    }
}
