//! Requests under which the gateway panics, and helpers for tests of whole requests.

mod exemptions;
mod store;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use arc_swap::ArcSwap;

use super::respond::HandledResponse;
use super::*;
use crate::body::Body;
use crate::clock::Clock;
use crate::config::{self, Diagnostics};
use crate::listen::{ConnectionLimit, ConnectionTimers, DrainTrigger};
use crate::observe::LogHandle;
use crate::process::{ProcessState, RunningGateway};
use crate::upstream::Pool;

const CONFIG: &str = r#"
[server]
workers = 1
[log]
access = "access.log"
[[listeners]]
address = "127.0.0.1:0"
[[routes]]
respond = { body = "hello" }
"#;

/// Has a gateway in `folder` fail with a request for each path.
fn fail(folder: &Path, paths: &[&str]) -> String {
    let config = folder.join("gateway.toml");
    std::fs::write(&config, CONFIG).unwrap();
    let (process, snapshot) = load(&config, Clock::System);
    let live = Arc::new(live(process, snapshot));
    let runtime = tokio::runtime::LocalRuntime::new().unwrap();
    runtime.block_on(async {
        for path in paths {
            assert!(fail_once(&live, path).is_err());
        }
    });
    let current = live.current.load();
    let sink = current.access.as_ref().unwrap().sink();
    assert!(sink.flush(Duration::from_secs(20)));
    live.process.metrics.encode()
}

fn load(path: &Path, clock: Clock) -> (ProcessState, Snapshot) {
    let mut diagnostics = Diagnostics::new();
    let (source, file) = config::load(path, &mut diagnostics);
    let file = file.unwrap();
    let blueprint = config::compile(&file, &source, clock.now(), None, &mut diagnostics).unwrap();
    let process =
        ProcessState::new(clock, LogHandle::off(), blueprint.settings.startup.bounds).unwrap();
    let access = process.open_access_log(&blueprint, None).unwrap();
    let snapshot = process.install(blueprint, access, None);
    (process, snapshot)
}

fn live(process: ProcessState, snapshot: Snapshot) -> RunningGateway {
    RunningGateway {
        current: Arc::new(ArcSwap::from_pointee(snapshot)),
        process,
    }
}

/// Fails during the response for `/begun`, else before it.
fn fail_once(live: &Arc<RunningGateway>, path: &str) -> std::thread::Result<()> {
    let (drain, gate) = (DrainTrigger::default().core(), ConnectionLimit::new(1));
    let pool = Pool::new(Clock::System);
    let timers = ConnectionTimers::spawn(drain.clone(), |_| {});
    let core = Rc::new(CoreState::new(live.clone(), drain.clone(), pool, timers));
    let snapshot = core.snapshot();
    let listener = snapshot.listeners.first().unwrap();
    let permit = gate.try_enter(&drain).unwrap();
    let timer = core.timers.start(&snapshot.settings.limits, permit);
    let (metrics, response) = (listener.metrics.clone(), timer.response_handle());
    let connection = ClientConnection {
        peer: SocketAddr::from(([192, 0, 2, 7], 7)),
        listener: listener.label.clone(),
        tls: None,
    };
    let request = Request::get(path).header("host", "a").body(()).unwrap();
    let parts = request.into_parts().0;
    let head = read_head(&parts, false, true, &snapshot).unwrap();
    let client = (snapshot.settings.client_ip).resolve(connection.peer.ip(), &parts.headers);
    let state = RequestState::new(core.clone(), Rc::new(metrics), response);
    let (now, geo) = (core.now(), &snapshot.settings.geo);
    let info = RequestInfo::of(&parts, "", now, None);
    let facts = RequestFacts::new(&head, &parts.headers, &connection, client, now, geo);
    catch_unwind(AssertUnwindSafe(|| {
        let mut request = RequestContext::new(&state, &info, &facts, None);
        let handled = HandledResponse::own(Response::new(Body::from("hello")));
        let _begun = (path == "/begun").then(|| request.start_response(handled));
        panic!("a fault");
    }))
}

#[test]
fn a_request_that_panics_is_logged_once() {
    let name = format!("lockgate-record-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let metrics = fail(&folder, &["/before", "/begun"]);
    let log = std::fs::read_to_string(folder.join("access.log")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let [before, begun] = log.lines().collect::<Vec<_>>()[..] else {
        panic!("{log}");
    };
    for part in ["\"path\":\"/before\"", "\"status\":500", "\"192.0.2.7\""] {
        assert!(before.contains(part), "{before}");
    }
    for part in ["\"path\":\"/begun\"", "\"status\":200", "\"cut\":\"panic\""] {
        assert!(begun.contains(part), "{begun}");
    }
    for series in [
        "method=\"GET\",status_class=\"2xx\"} 1\n",
        "method=\"GET\",status_class=\"5xx\"} 1\n",
        "lockgate_responses_cut_total{by=\"panic\"} 1\n",
    ] {
        assert!(metrics.contains(series), "{series}{metrics}");
    }
}
