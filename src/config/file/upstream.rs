//! `[[upstreams]]`.

use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use crate::config::{Spanned, Text};

/// One of `[[upstreams]]`.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// The header of the section.
    pub span: Range<usize>,
    /// What routes call it; unique.
    pub name: Text,
    /// Its servers, at least one in a file without errors.
    pub servers: Vec<Spanned<SocketAddr>>,
    /// How a server is chosen. Default p2c.
    pub balance: Spanned<Balance>,
    /// For a connection to be made. Default 2 s.
    pub connect_timeout: Spanned<Duration>,
    /// For the head of the response. Default 30 s.
    pub response_timeout: Spanned<Duration>,
    /// Idle connections kept to each server. Default 256.
    pub max_idle_per_server: Spanned<u32>,
}

/// How a server is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// The less busy of two drawn at random.
    P2c,
    /// Each in turn.
    RoundRobin,
}
