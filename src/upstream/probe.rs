//! A health check: one request on a connection of its own. Decides nothing about the server.

use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;

use http::header::{HOST, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};

use super::answer::Asked;
use super::cargo::Cargo;
use super::error::Error;
use super::pool::Pool;
use super::server::InFlight;
use super::shelf::Shelf;
use super::{Endpoint, Forwarding, Health, Outbound, Server, Upstream};
use crate::body::Body;

/// Who asks.
const AGENT: HeaderValue = HeaderValue::from_static("lockgate-health");

// === impl Pool ===

impl Pool {
    /// Asks a server once whether it is well, and takes down what it says.
    pub async fn check(&self, upstream: &Upstream, server: &Arc<Server>) -> Checked {
        let Some(health) = &upstream.health else {
            return Checked::default();
        };
        let asking = self.ask(upstream, server, health);
        let told = match tokio::time::timeout(health.timeout, asking).await {
            Ok(Ok(status)) if status.as_u16() < 400 => Ok(()),
            Ok(Ok(status)) => {
                let status = status.as_u16();
                let error = format!("the check was answered with status {status}, not below 400");
                Err((format!("status {status}"), error))
            }
            Ok(Err(error)) => Err((error.reason().to_owned(), error.to_string())),
            Err(_) => {
                let error = "the check was not answered within `health.timeout`";
                Err(("timeout".to_owned(), error.to_owned()))
            }
        };
        let changed = server.standing.checked(told.is_ok(), health);
        let (why, error) = told.err().unwrap_or_default();
        Checked {
            changed,
            why,
            error,
        }
    }

    async fn ask(
        &self,
        upstream: &Upstream,
        server: &Arc<Server>,
        health: &Health,
    ) -> Result<StatusCode, Error> {
        let host = host(server);
        let headers = HeaderMap::from_iter([(HOST, text(&host)), (USER_AGENT, AGENT)]);
        let outbound = Outbound {
            method: &Method::GET,
            target: &health.path,
            headers: &headers,
            edits: None,
            version: Version::HTTP_11,
            forwarding: Forwarding {
                peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
                client: IpAddr::V4(Ipv4Addr::LOCALHOST),
                trusted_peer: false,
                host: &host,
                https: false,
                request_id: "health",
                rules: "",
            },
            body: Body::Empty,
            upgrade: false,
            key: 0,
        };
        let cargo = Cargo::new(upstream, outbound)?;
        let asked = Asked::new(&Method::GET, false);
        // One that keeps nothing.
        let shelf = Rc::new(Shelf::new(Rc::clone(&self.local)));
        let server = InFlight::begin(server);
        let answered = self.afresh(upstream, shelf, server, asked, cargo);
        match answered.await {
            Ok(answer) => Ok(answer.response.status()),
            Err(setback) => setback.into_result().map(|answer| answer.response.status()),
        }
    }
}

/// What a health check said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The server is healthy now, or no longer.
    pub changed: Option<bool>,
    /// What was wrong, in a word or two.
    pub why: String,
    /// The same as a sentence.
    pub error: String,
}

/// What a server calls itself: its name or address.
fn host(server: &Server) -> String {
    match server.endpoint {
        Endpoint::Tcp(_) => server.label().to_string(),
        Endpoint::Unix(_) => "localhost".to_owned(),
    }
}

fn text(host: &str) -> HeaderValue {
    HeaderValue::from_str(host).unwrap_or(HeaderValue::from_static("localhost"))
}
