//! `[[rules]]`.

use std::ops::Range;
use std::time::Duration;

use http::HeaderName;

use crate::config::{Spanned, Text};
use crate::decision::Action;
use crate::limit::Algorithm;

/// One of `[[rules]]`. Cloudflare's names of the keys have become ours.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The header of the section.
    pub span: Range<usize>,
    /// Unique, `[A-Za-z0-9_-]{1,64}`, in a file without errors; empty where it was missing.
    pub name: Text,
    /// What is counted; `None`: as `mitigate`. One of the two is there in a file without errors.
    pub count: Option<Text>,
    /// What is stopped; `None`: as `count`.
    pub mitigate: Option<Text>,
    /// What tells clients apart, an expression a part; empty: one counter for all.
    pub key: Vec<Text>,
    /// Requests that are allowed in a period; `None`, also written 0: the action on every request
    /// that matches.
    pub limit: Option<Spanned<u32>>,
    /// The window, 1 ms to 366 days; in a file without errors there exactly if `limit` is and the
    /// algorithm is not concurrency.
    pub period: Option<Spanned<Duration>>,
    /// How requests are counted. Default sliding_window.
    pub algorithm: Spanned<Algorithm>,
    /// `token_bucket`, `gcra`: how many may come back to back from idle; `None`: the limit.
    pub burst: Option<Spanned<u32>>,
    /// `sliding_window`: sub-windows of a period. Default 1.
    pub slices: Spanned<u16>,
    /// `leaky_bucket`: how many may wait. Default 100.
    pub queue: Spanned<u32>,
    /// What a request costs. Default 1.
    pub cost: Spanned<Cost>,
    /// How far each key's limit may be from `limit`, as a part of it. Default 0.
    pub jitter: Spanned<f64>,
    /// Another limit, tried beside this one.
    pub candidate: Option<Candidate>,
    /// What is done with what is stopped. Default block.
    pub action: Spanned<Action>,
    /// One of `[responses]`.
    pub response: Option<Text>,
    /// `divert`: one of `[[upstreams]]`.
    pub upstream: Option<Text>,
    /// `leaky_bucket`, `delay`, `tarpit`: how long a request is held at the most. Default 5 s.
    pub max_delay: Spanned<Duration>,
    /// How long passing the limit bans a key, up to 366 days; zero is a throttle. Default zero.
    pub duration: Spanned<Duration>,
    /// The ban of the first offence, of the second and so on, instead of `duration`; empty: none
    /// was given.
    pub escalate: Vec<Spanned<Duration>>,
    /// Decide, log and count, but do not act. Default false.
    pub dry_run: Spanned<bool>,
    /// Whether the rule is there at all. Default true.
    pub enabled: Spanned<bool>,
    /// What a missing part of the key means. Default group.
    pub missing: Spanned<Missing>,
    /// What a client is told. Default standard.
    pub headers: Spanned<CountHeaders>,
}

/// What a request costs.
#[derive(Clone, Debug)]
pub enum Cost {
    /// Always so much.
    Fixed(u32),
    /// What an expression says.
    Expression(String),
    /// What a header of the response says.
    Header(HeaderName),
}

/// A limit that is tried beside a rule's own. What is absent is as in the rule.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The whole table.
    pub span: Range<usize>,
    /// How requests are counted.
    pub algorithm: Option<Spanned<Algorithm>>,
    /// Requests that are allowed.
    pub limit: Option<Spanned<u32>>,
    /// The window.
    pub period: Option<Spanned<Duration>>,
    /// How many may come back to back from idle.
    pub burst: Option<Spanned<u32>>,
    /// Sub-windows of a period.
    pub slices: Option<Spanned<u16>>,
    /// How many may wait.
    pub queue: Option<Spanned<u32>>,
}

/// What a missing part of a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// All who lack it share a counter.
    Group,
    /// The request is not counted.
    Skip,
}

/// Which headers tell a client where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountHeaders {
    /// `RateLimit-Policy` and `RateLimit`.
    Standard,
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`.
    Legacy,
    /// All of these.
    Both,
    /// None of these.
    None,
}
