//! Looks after upstreams on a thread of its own, one for the process: looks names up, checks the
//! health of servers, and says when a server is left out or comes back. Never serves a request.

mod checks;
mod names;

use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use self::checks::Checks;
use self::names::Names;
use super::cores::local_runtime;
use crate::observe::Field::Text;
use crate::snapshot::Live;
use crate::upstream::{Pool, Upstream};

pub(super) use names::look_up_new;

/// How long a reload, or a server in trouble, may go unnoticed.
const TICK: Duration = Duration::from_millis(500);

/// The thread.
pub(super) struct Lookout {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// What the thread works with.
struct Looking {
    live: Arc<Live>,
    checks: Checks,
    names: Names,
    /// Servers in trouble, by id, with the word for it that was said.
    troubled: HashMap<u64, &'static str>,
}

// === impl Lookout ===

impl Lookout {
    pub(super) fn start(live: Arc<Live>) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let (ready, looks) = sync_channel(1);
        let thread = thread::Builder::new().name("upstreams".to_owned());
        let thread = thread.spawn(move || run(live, stopped, &ready))?;
        let looks = looks.recv();
        looks.unwrap_or_else(|_| Err(io::Error::other("it has panicked")))?;
        Ok(Self { stop, thread })
    }

    pub(super) fn stop(self) {
        drop(self.stop);
        // A panic is on stderr already.
        let _ = self.thread.join();
    }
}

fn run(live: Arc<Live>, stopped: oneshot::Receiver<()>, ready: &SyncSender<io::Result<()>>) {
    let (looks, runtime) = match local_runtime() {
        Ok(runtime) => (Ok(()), Some(runtime)),
        Err(error) => (Err(error), None),
    };
    // Whoever starts it waits for this.
    let _ = ready.send(looks);
    let Some(runtime) = runtime else { return };
    runtime.block_on(async move {
        let looking = Looking::new(live).forever();
        tokio::select! {
            _ = stopped => {}
            () = looking => {}
        }
    });
    // A look-up that hangs keeps nobody waiting.
    runtime.shutdown_background();
}

// === impl Looking ===

impl Looking {
    fn new(live: Arc<Live>) -> Self {
        let pool = Rc::new(Pool::new(live.lasting.clock.clone()));
        Self {
            checks: Checks::new(live.clone(), pool),
            names: Names::new(live.clone()),
            troubled: HashMap::new(),
            live,
        }
    }

    async fn forever(mut self) {
        loop {
            let upstreams = self.live.current.load().upstreams.clone();
            let now = self.live.lasting.clock.instant();
            let due = self.checks.start_due(&upstreams, now);
            let due = due.min(self.names.start_due(&upstreams, now));
            self.tell_trouble(&upstreams);
            let wait = due.saturating_duration_since(now);
            tokio::time::sleep(wait.min(TICK)).await;
        }
    }

    /// Says who is left out, and who is back. What the checks say is said by them.
    fn tell_trouble(&mut self, upstreams: &[Arc<Upstream>]) {
        let log = &self.live.lasting.log;
        let mut troubled = HashMap::new();
        for upstream in upstreams {
            for server in upstream.servers() {
                let trouble = server.trouble().filter(|word| *word != "unhealthy");
                let before = self.troubled.get(&server.id()).copied();
                let fields = [
                    Text("upstream", &upstream.name),
                    Text("server", server.label()),
                    Text("address", &server.endpoint),
                    Text("reason", &trouble.or(before).unwrap_or_default()),
                ];
                match (before, trouble) {
                    (old, Some(new)) if old != Some(new) => log.warn("server left out", &fields),
                    (Some(_), None) => log.info("server back", &fields),
                    _ => {}
                }
                troubled.extend(trouble.map(|word| (server.id(), word)));
            }
        }
        self.troubled = troubled;
    }
}

/// `interval` from `now`, a tenth more or less, so that gateways do not act in step.
fn jittered(now: Instant, interval: Duration) -> Instant {
    now + interval.mul_f64(0.9 + 0.2 * chance())
}

/// A number from 0 to 1.
fn chance() -> f64 {
    f64::from(getrandom::u32().unwrap_or_default()) / f64::from(u32::MAX)
}
