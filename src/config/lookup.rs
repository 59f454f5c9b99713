//! Checks for `lockgate check` whether the host names of servers resolve. The running gateway does
//! not use it: it starts without a lookup and resolves names periodically.

use std::ops::Range;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::file::ConfigFile;
use super::{Diagnostics, LintCode};
use crate::clock::Clock;
use crate::upstream::{HostPort, ServerLocation};

/// The timeout for all lookups together.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(3);

/// The maximum number of names to look up.
const MOST: usize = 256;

/// Warns of names that currently do not resolve.
pub fn warn_unresolved_names(file: &ConfigFile, clock: &Clock, diagnostics: &mut Diagnostics) {
    let mut pending = names(file);
    let (sender, found) = mpsc::channel();
    for (name, _) in &pending {
        let (name, sender) = (name.clone(), sender.clone());
        // The thread is detached: a lookup that hangs is never joined.
        let resolve = move || drop(sender.send((name.resolve(), name)));
        if thread::Builder::new().spawn(resolve).is_err() {
            return;
        }
    }
    drop(sender);
    let until = clock.instant() + LOOKUP_TIMEOUT;
    while !pending.is_empty() {
        let left = until.saturating_duration_since(clock.instant());
        let Ok((looked_up, name)) = found.recv_timeout(left) else {
            break;
        };
        let Some(at) = pending.iter().position(|(other, _)| *other == name) else {
            continue;
        };
        let (_, span) = pending.swap_remove(at);
        if let Err(error) = looked_up {
            not_found(&name, span, &error.to_string(), diagnostics);
        }
    }
    for (name, span) in pending {
        not_found(&name, span, "timed out", diagnostics);
    }
}

/// Returns each name once, with its first span.
fn names(file: &ConfigFile) -> Vec<(HostPort, Range<usize>)> {
    let servers = file.upstreams.iter().flat_map(|upstream| &upstream.servers);
    let mut names: Vec<(HostPort, Range<usize>)> = Vec::new();
    for server in servers {
        if let ServerLocation::Name(name) = &server.address.value
            && names.len() < MOST
            && !names.iter().any(|(known, _)| known.host == name.host)
        {
            names.push((name.clone(), server.address.span.clone()));
        }
    }
    names
}

fn not_found(name: &HostPort, span: Range<usize>, error: &str, diagnostics: &mut Diagnostics) {
    let message = format!("cannot resolve `{}`: {error}", name.host);
    diagnostics
        .warning(LintCode::UnresolvedServer, span, message)
        .help("the gateway starts anyway and retries every `resolve_interval`");
}
