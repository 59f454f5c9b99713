//! The connections of the admin port: so many at once. Where all places are taken, the one that has
//! been silent longest makes room; one whose request was heard is never ended for another.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::{AbortHandle, JoinSet};

/// Connections at once.
pub(super) const MOST: usize = 64;

/// The places, the oldest first.
#[derive(Default)]
pub(super) struct Places {
    tasks: JoinSet<()>,
    taken: VecDeque<Place>,
}

/// A connection's place.
struct Place {
    task: AbortHandle,
    heard: Heard,
}

/// Whether a connection has sent a request's head.
#[derive(Clone, Default)]
pub(super) struct Heard(Arc<AtomicBool>);

// === impl Places ===

impl Places {
    /// Serves a connection, if there is a place.
    pub(super) fn take<F>(&mut self, serve: impl FnOnce(Heard) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.taken.retain(|place| !place.task.is_finished());
        if self.taken.len() >= MOST && !self.end_oldest_silent() {
            return;
        }
        let heard = Heard::default();
        let task = self.tasks.spawn(serve(heard.clone()));
        self.taken.push_back(Place { task, heard });
    }

    fn end_oldest_silent(&mut self) -> bool {
        let silent = self.taken.iter().position(|place| !place.heard.is_so());
        let ended = silent.and_then(|number| self.taken.remove(number));
        ended.inspect(|place| place.task.abort()).is_some()
    }

    /// Waits until a connection has ended; `None`: there is none.
    pub(super) async fn one_ended(&mut self) -> Option<()> {
        self.tasks.join_next().await.map(drop)
    }
}

// === impl Heard ===

impl Heard {
    /// Says so.
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_so(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod unit {
    use tokio::sync::watch;
    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn one_that_was_heard_keeps_its_place_until_it_ends() {
        let mut places = Places::default();
        let (end, ends) = watch::channel(());
        let serve = |heard: Heard| {
            let mut ends = ends.clone();
            async move {
                heard.set();
                drop(ends.changed().await);
            }
        };
        for _ in 0..MOST {
            places.take(serve);
        }
        while places.taken.iter().any(|place| !place.heard.is_so()) {
            yield_now().await;
        }
        places.take(|_| async { unreachable!("there is no place") });
        assert_eq!((places.taken.len(), places.tasks.len()), (MOST, MOST));
        drop(end);
        while places.one_ended().await.is_some() {}
        places.take(serve);
        assert_eq!(places.taken.len(), 1);
    }
}
