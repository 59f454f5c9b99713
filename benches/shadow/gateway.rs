//! The gateway as its users run it: the release binary, in a process of its own.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;

use super::origin::Origin;
use super::{NOBODY, SHADOWED, relay};

pub struct Gateway {
    pub plain: SocketAddr,
    pub tls: SocketAddr,
    child: Child,
    folder: PathBuf,
}

/// What becomes of requests that come from [`SHADOWED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// They get a shadow answer that imitates the origin's.
    Imitated,
    /// They get a shadow answer as it is configured.
    Configured,
    /// The origin answers them, as everybody else.
    Real,
}

impl Gateway {
    /// Starts it; `relayed`: its addresses are those of the relay.
    pub fn start(origin: &Origin, way: Way, relayed: bool) -> Self {
        let name = format!("lockgate-shadow-{}-{way:?}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let config = folder.join("gateway.toml");
        std::fs::write(&config, configuration(origin, way)).unwrap();
        let binary = std::env::var("LOCKGATE").unwrap_or("target/release/lockgate".to_owned());
        let mut child = Command::new(binary)
            .arg("--config")
            .arg(&config)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut addresses = lines.by_ref().map_while(Result::ok).filter_map(|line| {
            let (_, address) = line.rsplit_once(" listening address=")?;
            Some(address.trim_matches('"').parse().unwrap())
        });
        let (plain, tls) = (addresses.next().unwrap(), addresses.next().unwrap());
        thread::spawn(move || lines.for_each(drop));
        let reach = |address| match relayed {
            true => relay::start(address),
            false => address,
        };
        Self {
            plain: reach(plain),
            tls: reach(tls),
            child,
            folder,
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn configuration(origin: &Origin, way: Way) -> String {
    let imitate = way != Way::Configured;
    let stopped = match way {
        Way::Real => NOBODY,
        _ => SHADOWED,
    };
    format!(
        r#"
        [log]
        format = "text"
        access = "off"
        [[listeners]]
        address = "127.0.0.1:0"
        [[listeners]]
        address = "127.0.0.1:0"
        [listeners.tls]
        [[upstreams]]
        name = "app"
        servers = ["{}"]
        [[routes]]
        path = "/length"
        upstream = "app"
        [[routes]]
        path = "/chunked"
        upstream = "app"
        [[rules]]
        name = "quiet"
        mitigate = 'ip.src eq {stopped}'
        action = "shadow"
        response = "fine"
        [responses.fine]
        content_type = "application/json"
        body = '{{"ok":true,"id":"{{{{uuid}}}}","at":"{{{{now}}}}"}}'
        imitate = {imitate}
        "#,
        origin.address
    )
}
