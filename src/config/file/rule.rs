//! `[[rules]]`.

use std::ops::Range;
use std::time::Duration;

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
    /// The window, 1 ms to 366 days; there exactly if `limit` is, in a file without errors.
    pub period: Option<Spanned<Duration>>,
    /// How requests are counted. Default sliding_window.
    pub algorithm: Spanned<Algorithm>,
    /// What is done with what is stopped. Default block.
    pub action: Spanned<Action>,
    /// One of `[responses]`.
    pub response: Option<Text>,
    /// How long passing the limit bans a key, up to 366 days; zero is a throttle. Default zero.
    pub duration: Spanned<Duration>,
    /// Decide, log and count, but do not act. Default false.
    pub dry_run: Spanned<bool>,
    /// Whether the rule is there at all. Default true.
    pub enabled: Spanned<bool>,
    /// What a missing part of the key means. Default group.
    pub missing: Spanned<Missing>,
    /// What a client is told. Default standard.
    pub headers: Spanned<CountHeaders>,
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
