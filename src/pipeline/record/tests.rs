//! What is written down when the gateway itself fails under a request.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use arc_swap::ArcSwap;
use http::{Request, Response};

use super::*;
use crate::clock::Clock;
use crate::config::{self, Diagnostics};
use crate::listen::{Deadlines, DrainTrigger, Gate};
use crate::observe::Log;
use crate::pipeline::read_head;
use crate::snapshot::{Lasting, Live};
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
    let live = Arc::new(load(&config));
    let runtime = tokio::runtime::LocalRuntime::new().unwrap();
    runtime.block_on(async {
        for path in paths {
            assert!(fail_once(&live, path).is_err());
        }
    });
    let current = live.current.load();
    let sink = current.access.as_ref().unwrap().sink();
    assert!(sink.flush(Duration::from_secs(20)));
    live.lasting.metrics.encode()
}

fn load(path: &Path) -> Live {
    let mut diagnostics = Diagnostics::new();
    let (source, file) = config::load(path, &mut diagnostics);
    let file = file.unwrap();
    let bounds = config::fixed(&file, &source).bounds;
    let lasting = Lasting::new(Clock::System, Log::off(), bounds).unwrap();
    let mut cx = config::Context {
        source: &source,
        lasting: &lasting,
        check_only: false,
        previous: None,
        diagnostics: &mut diagnostics,
    };
    let snapshot = config::compile(&file, &mut cx).unwrap();
    Live {
        current: Arc::new(ArcSwap::from_pointee(snapshot)),
        lasting,
    }
}

/// `/begun`: when the answer is under way, else before there is one.
fn fail_once(live: &Arc<Live>, path: &str) -> std::thread::Result<()> {
    let (drain, gate) = (DrainTrigger::new().core(), Gate::new(1));
    let pool = Pool::new(Clock::System);
    let deadlines = Deadlines::spawn(drain.clone(), || {});
    let core = Rc::new(Core::new(live.clone(), drain.clone(), pool, deadlines));
    let snapshot = core.snapshot();
    let listener = snapshot.listeners.first().unwrap();
    let permit = gate.try_enter(&drain).unwrap();
    let watch = core.deadlines.watch(&snapshot.limits, permit);
    let way = Rc::new(Entrance::new(listener, &watch));
    let connection = Connection {
        peer: SocketAddr::from(([192, 0, 2, 7], 7)),
        listener: listener.label.clone(),
        tls: None,
    };
    let request = Request::get(path).header("host", "a").body(()).unwrap();
    let parts = request.into_parts().0;
    let head = read_head(&parts, false, true, &snapshot).unwrap();
    let client = (snapshot.client_ip).resolve(connection.peer.ip(), &parts.headers);
    let visit = Visit::begin(core.clone(), way, Rc::default());
    let (now, geo) = (visit.now, &snapshot.geo);
    let facts = RequestFacts::new(&head, &parts.headers, &connection, client, now, geo);
    catch_unwind(AssertUnwindSafe(|| {
        let open = visit.unanswered(&facts);
        let sent = Sent::own(Response::new(Body::from("hello")));
        let _begun = (path == "/begun").then(|| visit.end(&facts, &open.decision, sent));
        panic!("a fault");
    }))
}

#[test]
fn a_request_under_which_it_fails_is_written_down_once() {
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
