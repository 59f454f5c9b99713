//! The threads that serve: a core each, with its own runtime and its own view of the listeners.

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

/// How often a core looks after its idle origin connections.
const PRUNE: Duration = Duration::from_secs(5);

/// How long a core that stops takes to send what waits for a remote store.
const STORE_FLUSH: Duration = Duration::from_secs(1);

/// What a core's thread starts with.
struct CoreThread {
    live: Arc<RunningGateway>,
    number: usize,
    cores: usize,
    listeners: watch::Receiver<Vec<Arc<BoundListener>>>,
    gate: ConnectionLimit,
    drain: CoreDrain,
    /// Its accept loops, of removed listeners too.
    loops: JoinSet<()>,
}

/// Through which a thread says whether it has started.
pub(super) type Ready = SyncSender<io::Result<()>>;

/// A bound that a core accepts from.
struct Accepting {
    listener: ListenerId,
    drain: CoreDrain,
}

/// Starts so many cores, which accept from `listeners` until `drain` starts. All of them do when this
/// returns: where one cannot, the others end too.
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
        // A panic is on stderr already.
        threads.into_iter().for_each(|core| drop(core.join()));
        return Err(error);
    }
    Ok(threads)
}

// === impl CoreThread ===

impl CoreThread {
    async fn serve(mut self, ready: Ready) {
        let pool = Pool::new(self.live.lasting.clock.clone());
        let live = self.live.clone();
        let timers = ConnectionTimers::spawn(self.drain.clone(), move |fault| {
            live.lasting.metrics.count_protocol_error(fault.into());
        });
        let core = CoreState::new(self.live.clone(), self.drain.clone(), pool, timers);
        let core = Rc::new(core);
        tokio::task::spawn_local(prune_forever(core.clone()));
        tokio::task::spawn_local(core.store.clone().run());
        let mut accepting = Vec::new();
        let accepts = self.follow(&mut accepting, &core);
        let has_failed = accepts.is_err();
        // The receiver waits for this.
        let _ = ready.send(accepts);
        if has_failed {
            return;
        }
        self.follow_listeners(&mut accepting, &core).await;
        self.end(&core).await;
        let queued = core.store.send_queued();
        // What is left then is lost, as it is when a queue is full.
        let _ = tokio::time::timeout(STORE_FLUSH, queued).await;
    }

    /// Accepts where there is a bound, until the drain starts.
    async fn follow_listeners(&mut self, accepting: &mut Vec<Accepting>, core: &Rc<CoreState>) {
        let drain = self.drain.clone();
        loop {
            tokio::select! {
                biased;
                () = drain.started() => return,
                // The gateway outlives its cores' work: an end of this is the drain too.
                changed = self.listeners.changed() => if changed.is_err() {
                    return drain.started().await;
                },
            }
            if let Err(error) = self.follow(accepting, core) {
                error!(%error, "core cannot listen");
            }
        }
    }

    /// Accepts where there is a bound now, and nowhere else.
    fn follow(&mut self, accepting: &mut Vec<Accepting>, core: &Rc<CoreState>) -> io::Result<()> {
        let listeners = self.listeners.borrow_and_update().clone();
        self.leave(accepting, &listeners, core);
        self.enter(accepting, &listeners, core)
    }

    /// Lets the connections of removed listeners come to their end.
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

    /// Where that fails, it still enters the other listeners.
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
        // Those that have ended are forgotten.
        while self.loops.try_join_next().is_some() {}
        Ok(())
    }

    /// Waits until all connections have ended, those of the kernel's queues too, for as long as the
    /// configuration allows. A request that begins in the second half of that time would be cut
    /// off: it is refused.
    async fn end(&mut self, core: &CoreState) {
        // Before they have run, a core without connections looks as if it were done.
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

/// Runs `task` on a thread of its own with a runtime of its own. Returns once the task has sent
/// that it is ready; a task that sends an error ends then.
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
                // A name lookup that hangs does not delay the end.
                runtime.shutdown_background();
            }
            Err(error) => drop(ready.send(Err(error))),
        }
    };
    let thread = thread::Builder::new().name(name).spawn(run)?;
    let is_ready = is_ready.recv();
    if let Err(error) = is_ready.unwrap_or_else(|_| Err(io::Error::other("it has panicked"))) {
        // A panic is on stderr already.
        let _ = thread.join();
        return Err(error);
    }
    Ok(thread)
}
