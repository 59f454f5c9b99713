//! The threads that serve: a core each, with its own runtime and its own view of the doors.

use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::{Builder, LocalRuntime};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::doors::{Door, Doors};
use crate::listen::{self, Deadlines, Drain, DrainTrigger, Gate};
use crate::observe::Field::{Number, Text};
use crate::observe::ProtocolError;
use crate::pipeline::{self, Core};
use crate::snapshot::{ListenerId, Live};
use crate::upstream::Pool;

/// How often a core looks after its idle origin connections.
const PRUNE: Duration = Duration::from_secs(5);

/// What a core's thread starts with.
struct CoreThread {
    live: Arc<Live>,
    number: usize,
    cores: usize,
    doors: watch::Receiver<Vec<Arc<Door>>>,
    gate: Gate,
    drain: Drain,
    /// Its accept loops, of doors that are gone too.
    loops: JoinSet<()>,
}

/// A door that a core accepts from.
struct Accepting {
    listener: ListenerId,
    drain: Drain,
}

/// Starts so many cores, which accept from `doors` until `drain` starts.
pub(super) fn start(
    cores: usize,
    live: &Arc<Live>,
    doors: &Doors,
    drain: &DrainTrigger,
) -> io::Result<Vec<JoinHandle<()>>> {
    let core = |number| {
        let core = CoreThread {
            live: live.clone(),
            number,
            cores,
            doors: doors.follow(),
            gate: doors.gate.clone(),
            drain: drain.core(),
            loops: JoinSet::new(),
        };
        let thread = thread::Builder::new().name(format!("core-{number}"));
        thread.spawn(move || core.run())
    };
    (0..cores).map(core).collect()
}

// === impl CoreThread ===

impl CoreThread {
    fn run(self) {
        let log = self.live.lasting.log.clone();
        let ran = local_runtime().and_then(|runtime| runtime.block_on(self.serve()));
        if let Err(error) = ran {
            log.error("core failed", &[Text("error", &error)]);
        }
    }

    async fn serve(mut self) -> io::Result<()> {
        let pool = Pool::new(self.live.lasting.clock.clone());
        let live = self.live.clone();
        let deadlines = Deadlines::spawn(self.drain.clone(), move || {
            let errors = &live.lasting.metrics.protocol_errors;
            errors.count(ProtocolError::Timeout);
        });
        let core = Core::new(self.live.clone(), self.drain.clone(), pool, deadlines);
        let core = Rc::new(core);
        tokio::task::spawn_local(prune_forever(core.clone()));
        self.follow_doors(&core).await;
        self.end(&core).await;
        Ok(())
    }

    /// Accepts where there is a door, until the drain starts.
    async fn follow_doors(&mut self, core: &Rc<Core>) {
        let mut accepting = Vec::new();
        let drain = self.drain.clone();
        loop {
            let doors = self.doors.borrow_and_update().clone();
            self.leave(&mut accepting, &doors, core);
            self.enter(&mut accepting, &doors, core);
            drop(doors);
            tokio::select! {
                biased;
                () = drain.started() => return,
                // The gateway outlives its cores' work: an end of this is the drain too.
                changed = self.doors.changed() => if changed.is_err() {
                    return drain.started().await;
                },
            }
        }
    }

    /// Lets the connections of the doors that are gone come to their end.
    fn leave(&self, accepting: &mut Vec<Accepting>, doors: &[Arc<Door>], core: &Core) {
        let before = accepting.len();
        accepting.retain(|own| {
            let stays = doors.iter().any(|door| door.id() == own.listener);
            if !stays {
                own.drain.leave();
            }
            stays
        });
        if accepting.len() < before {
            core.deadlines.tell();
        }
    }

    fn enter(&mut self, accepting: &mut Vec<Accepting>, doors: &[Arc<Door>], core: &Rc<Core>) {
        for door in doors {
            if accepting.iter().any(|own| own.listener == door.id()) {
                continue;
            }
            let drain = self.drain.apart();
            for socket in door.of_core(self.number, self.cores) {
                if let Err(error) = self.accept(socket, door, &drain, core) {
                    let log = &self.live.lasting.log;
                    log.error("core cannot listen", &[Text("error", &error)]);
                }
            }
            accepting.push(Accepting {
                listener: door.id(),
                drain,
            });
        }
    }

    fn accept(
        &mut self,
        socket: &TcpListener,
        door: &Door,
        drain: &Drain,
        core: &Rc<Core>,
    ) -> io::Result<()> {
        let socket = tokio::net::TcpListener::from_std(socket.try_clone()?)?;
        let (listener, core) = (door.listener.clone(), core.clone());
        let accept = listen::accept_loop(
            socket,
            door.own,
            self.gate.clone(),
            drain.clone(),
            move |tcp, peer, permit| {
                let (core, listener) = (core.clone(), listener.clone());
                listen::spawn(pipeline::connection(core, listener, tcp, peer, permit));
            },
        );
        let in_use = door.in_use.clone();
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
    async fn end(&mut self, core: &Core) {
        // Before they have run, a core without connections looks as if it were done.
        while self.loops.join_next().await.is_some() {}
        let half = core.snapshot().drain_timeout / 2;
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
                let open = self.drain.open();
                let log = &self.live.lasting.log;
                log.warn("drain timed out", &[Number("connections", open as u64)]);
            },
            () = self.drain.over() => core.cut.set(true),
        }
    }
}

async fn prune_forever(core: Rc<Core>) {
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

/// A runtime for one thread.
pub(super) fn local_runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread()
        .enable_all()
        .build_local(Default::default())
}
