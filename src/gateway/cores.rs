//! The worker threads: each serves one core, with its own runtime and its own view of the listeners.

use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{error, warn};

use super::listener_set::{BoundListener, ListenerSet};
use crate::listen::{self, ConnectionLimit, ConnectionTimers, CoreDrain, DrainTrigger};
use crate::pipeline::{self, CoreState};
use crate::process::RunningGateway;
use crate::snapshot::ListenerId;
use crate::upstream::Pool;

/// The interval for pruning idle upstream connections.
const PRUNE: Duration = Duration::from_secs(5);

/// The maximum time that a stopping core waits for queued writes to a remote store.
const STORE_FLUSH: Duration = Duration::from_secs(1);

/// The state of a core's thread.
struct CoreThread {
    live: Arc<RunningGateway>,
    number: usize,
    cores: usize,
    listeners: watch::Receiver<Vec<Arc<BoundListener>>>,
    gate: ConnectionLimit,
    drain: CoreDrain,
    /// The accept loops, including those of removed listeners.
    loops: JoinSet<()>,
}

/// The channel on which a thread reports whether it has started.
pub(super) type Ready = SyncSender<io::Result<()>>;

/// A listener that a core accepts from.
struct Accepting {
    listener: ListenerId,
    drain: CoreDrain,
}

/// Starts `cores` threads that accept from `listeners` until `drain` starts. All of them accept when this
/// returns. If one fails to start, the others end too.
pub(super) fn start(
    cores: usize,
    live: &Arc<RunningGateway>,
    listeners: &ListenerSet,
    drain: &DrainTrigger,
) -> io::Result<Vec<JoinHandle<()>>> {
    let mut threads = Vec::with_capacity(cores);
    let started = (0..cores).try_for_each(|number| {
        let core = CoreThread {
            live: live.clone(),
            number,
            cores,
            listeners: listeners.follow(),
            gate: listeners.gate.clone(),
            drain: drain.core(),
            loops: JoinSet::new(),
        };
        threads.push(spawn(format!("core-{number}"), |ready| core.serve(ready))?);
        Ok(())
    });
    if let Err(error) = started {
        listeners.close();
        drain.start();
        drain.cut();
        // The panic was already written to stderr.
        threads.into_iter().for_each(|core| drop(core.join()));
        return Err(error);
    }
    Ok(threads)
}

// === impl CoreThread ===

impl CoreThread {
    async fn serve(mut self, ready: Ready) {
        let pool = Pool::new(self.live.process.clock.clone());
        let live = self.live.clone();
        let timers = ConnectionTimers::spawn(self.drain.clone(), move |fault| {
            live.process.metrics.count_protocol_error(fault.into());
        });
        let core = CoreState::new(self.live.clone(), self.drain.clone(), pool, timers);
        let core = Rc::new(core);
        tokio::task::spawn_local(prune_forever(core.clone()));
        tokio::task::spawn_local(flush_forever(core.clone()));
        tokio::task::spawn_local(core.store.clone().run());
        core.store.first_attempt().await;
        let mut accepting = Vec::new();
        let accepts = self.follow(&mut accepting, &core);
        let has_failed = accepts.is_err();
        // The receiver is waiting for this.
        let _ = ready.send(accepts);
        if has_failed {
            return;
        }
        self.follow_listeners(&mut accepting, &core).await;
        self.end(&core).await;
        let queued = core.store.finish();
        // Entries left after the timeout are lost, as when the queue is full.
        let _ = tokio::time::timeout(STORE_FLUSH, queued).await;
    }

    /// Follows changes of the listeners until the drain starts.
    async fn follow_listeners(&mut self, accepting: &mut Vec<Accepting>, core: &Rc<CoreState>) {
        let drain = self.drain.clone();
        loop {
            tokio::select! {
                biased;
                () = drain.started() => return,
                // The listener set outlives the cores, so a closed channel means that the drain starts.
                changed = self.listeners.changed() => if changed.is_err() {
                    return drain.started().await;
                },
            }
            if let Err(error) = self.follow(accepting, core) {
                error!(%error, "worker cannot accept connections");
            }
        }
    }

    /// Starts and stops accepting to match the current listeners.
    fn follow(&mut self, accepting: &mut Vec<Accepting>, core: &Rc<CoreState>) -> io::Result<()> {
        let listeners = self.listeners.borrow_and_update().clone();
        self.leave(accepting, &listeners, core);
        self.enter(accepting, &listeners, core)
    }

    /// Drains the connections of removed listeners.
    fn leave(
        &self,
        accepting: &mut Vec<Accepting>,
        listeners: &[Arc<BoundListener>],
        core: &CoreState,
    ) {
        let before = accepting.len();
        accepting.retain(|own| {
            let stays = listeners
                .iter()
                .any(|bound| bound.listener.id == own.listener);
            if !stays {
                own.drain.leave();
            }
            stays
        });
        if accepting.len() < before {
            core.timers.notice_drain();
        }
    }

    /// Accepts from new listeners. If one fails, the others still accept.
    fn enter(
        &mut self,
        accepting: &mut Vec<Accepting>,
        listeners: &[Arc<BoundListener>],
        core: &Rc<CoreState>,
    ) -> io::Result<()> {
        let mut entered = Ok(());
        for bound in listeners {
            if accepting
                .iter()
                .any(|own| own.listener == bound.listener.id)
            {
                continue;
            }
            let drain = self.drain.apart();
            for socket in bound.sockets.of_core(self.number, self.cores) {
                entered = entered.and(self.accept(socket, bound, &drain, core));
            }
            accepting.push(Accepting {
                listener: bound.listener.id,
                drain,
            });
        }
        entered
    }

    fn accept(
        &mut self,
        socket: &TcpListener,
        bound: &BoundListener,
        drain: &CoreDrain,
        core: &Rc<CoreState>,
    ) -> io::Result<()> {
        let socket = tokio::net::TcpListener::from_std(socket.try_clone()?)?;
        let (listener, core) = (bound.listener.clone(), core.clone());
        let accept = listen::accept_loop(
            socket,
            bound.sockets.own,
            self.gate.clone(),
            drain.clone(),
            move |tcp, peer, permit| {
                let (core, listener) = (core.clone(), listener.clone());
                listen::spawn(pipeline::connection(core, listener, tcp, peer, permit));
            },
        );
        let in_use = bound.sockets.in_use.clone();
        self.loops.spawn_local(async move {
            accept.await;
            drop(in_use);
        });
        // Removes the accept loops that have ended.
        while self.loops.try_join_next().is_some() {}
        Ok(())
    }

    /// Waits until all connections have ended, including those in the kernel's queues, at most `drain_timeout`.
    /// Refuses requests that start in the second half of that time, because they might not finish.
    async fn end(&mut self, core: &CoreState) {
        // Until the accept loops have ended, there may be connections that are not counted yet.
        while self.loops.join_next().await.is_some() {}
        let half = core.snapshot().settings.drain_timeout / 2;
        let ended = async || tokio::time::timeout(half, self.drain.ended()).await.is_ok();
        let waits = async {
            if ended().await {
                return true;
            }
            core.late.set(true);
            ended().await
        };
        tokio::select! {
            ended = waits => if !ended {
                core.cut.set(true);
                warn!(connections = self.drain.open(), "drain timed out");
            },
            () = self.drain.over() => core.cut.set(true),
        }
    }
}

async fn prune_forever(core: Rc<CoreState>) {
    let mut tick = tokio::time::interval(PRUNE);
    loop {
        tick.tick().await;
        let snapshot = core.snapshot();
        let servers: Vec<_> = snapshot
            .upstreams
            .iter()
            .flat_map(|u| u.servers())
            .collect();
        core.pool.retain(&servers);
        core.pool.prune();
    }
}

/// Hands what the core has recorded about requests to the process.
async fn flush_forever(core: Rc<CoreState>) {
    loop {
        let pause = core.activity.flush(core.instant());
        tokio::time::sleep(pause).await;
    }
}

/// Runs `task` on a new thread with its own runtime. Returns once the task has reported that it is ready. A
/// task that reports an error ends.
pub(super) fn spawn<F: Future<Output = ()>>(
    name: String,
    task: impl FnOnce(Ready) -> F + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let (ready, is_ready) = sync_channel(1);
    let run = move || {
        let mut builder = Builder::new_current_thread();
        match builder.enable_all().build_local(Default::default()) {
            Ok(runtime) => {
                runtime.block_on(task(ready));
                // A name lookup that hangs does not delay the shutdown.
                runtime.shutdown_background();
            }
            Err(error) => drop(ready.send(Err(error))),
        }
    };
    let thread = thread::Builder::new().name(name).spawn(run)?;
    let is_ready = is_ready.recv();
    if let Err(error) = is_ready.unwrap_or_else(|_| Err(io::Error::other("the thread panicked"))) {
        // The panic was already written to stderr.
        let _ = thread.join();
        return Err(error);
    }
    Ok(thread)
}
