//! The attempts per second, the share of errors and the latency of each server over the last ten seconds.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::upstream::{LATENCY_BOUNDS, ServerFigures, p99};

/// The window of a rate.
const WINDOW: Duration = Duration::from_secs(10);

/// The name of an upstream and the configured address of a server.
type ServerName = (Arc<str>, Arc<str>);

/// Samples of the counters of all servers.
#[derive(Debug, Default)]
pub struct ServerRates(HashMap<ServerName, VecDeque<RateSample>>);

/// The counters of a server at one moment.
#[derive(Clone, Copy, Debug)]
struct RateSample {
    at: Instant,
    attempts: u64,
    errors: u64,
    /// The responses in each bucket of latencies.
    latencies: [u64; LATENCY_BOUNDS.len() + 1],
}

/// The recent rates of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServerRate {
    /// Attempts within the window.
    pub attempts: u64,
    /// Attempts without a response within the window.
    pub errors: u64,
    /// Attempts per second.
    pub requests_per_s: f64,
    /// The share of attempts without a response, 0 to 1.
    pub error_ratio: f64,
    /// The 99th percentile of the time until the response head, in milliseconds. `None` without responses.
    pub p99_ms: Option<f64>,
}

// === impl ServerRates ===

impl ServerRates {
    /// Adds a sample of every server and removes servers that are gone.
    pub fn sample(
        &mut self,
        at: Instant,
        servers: impl IntoIterator<Item = (Arc<str>, Arc<str>, ServerFigures)>,
    ) {
        let mut current = HashMap::new();
        for (upstream, address, figures) in servers {
            let name = (upstream, address);
            let mut samples = self.0.remove(&name).unwrap_or_default();
            samples.push_back(RateSample::new(at, &figures));
            while samples.get(1).is_some_and(|second| is_old(second.at, at)) {
                samples.pop_front();
            }
            current.insert(name, samples);
        }
        self.0 = current;
    }

    /// Returns the rates of a server over the window. Zero for an unknown server.
    pub fn of(&self, upstream: &Arc<str>, address: &Arc<str>) -> ServerRate {
        let samples = self.0.get(&(upstream.clone(), address.clone()));
        let ends = samples.and_then(|samples| samples.front().zip(samples.back()));
        ends.map_or_else(ServerRate::default, |(first, last)| first.rate_until(last))
    }
}

/// Returns whether a sample is at least as old as the window.
fn is_old(sample: Instant, now: Instant) -> bool {
    now.saturating_duration_since(sample) >= WINDOW
}

// === impl RateSample ===

impl RateSample {
    fn new(at: Instant, figures: &ServerFigures) -> Self {
        let errors = figures.connect_error + figures.error + figures.timeout;
        let mut latencies = [0; LATENCY_BOUNDS.len() + 1];
        for class in &figures.latencies {
            let pairs = latencies.iter_mut().zip(class.buckets);
            pairs.for_each(|(count, more)| *count += more);
        }
        Self {
            at,
            attempts: figures.ok + errors,
            errors,
            latencies,
        }
    }

    fn rate_until(&self, last: &Self) -> ServerRate {
        let seconds = last.at.saturating_duration_since(self.at).as_secs_f64();
        let attempts = last.attempts.saturating_sub(self.attempts);
        let errors = last.errors.saturating_sub(self.errors);
        let pairs = last.latencies.iter().zip(self.latencies);
        let latencies: Vec<u64> = pairs
            .map(|(last, first)| last.saturating_sub(first))
            .collect();
        let ratio = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        ServerRate {
            attempts,
            errors,
            requests_per_s: ratio(attempts as f64, seconds),
            error_ratio: ratio(errors as f64, attempts as f64),
            p99_ms: p99(&latencies).map(|latency| latency.as_secs_f64() * 1_000.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[test]
    fn rates_cover_the_last_ten_seconds() {
        let mut rates = ServerRates::default();
        let (upstream, address): (Arc<str>, Arc<str>) = ("app".into(), "a:1".into());
        let start = Clock::System.instant();
        let figures = |ok, error| {
            let mut figures = ServerFigures {
                ok,
                error,
                ..ServerFigures::default()
            };
            figures.latencies[1].buckets[3] = ok;
            figures
        };
        let mut sample = |second, ok, error| {
            let at = start + Duration::from_secs(second);
            let server = (upstream.clone(), address.clone(), figures(ok, error));
            rates.sample(at, [server]);
            rates.of(&upstream, &address)
        };
        assert_eq!(sample(0, 1_000, 0), ServerRate::default());
        for second in 1..=10 {
            sample(second, 1_000 + 30 * second, 10 * second);
        }
        let busy = ServerRate {
            attempts: 400,
            errors: 100,
            requests_per_s: 40.0,
            error_ratio: 0.25,
            p99_ms: Some(0.995),
        };
        assert_eq!(sample(11, 1_330, 110), busy);
        for second in 12..=21 {
            sample(second, 1_330, 110);
        }
        assert_eq!(sample(22, 1_330, 110), ServerRate::default());
        rates.sample(start + Duration::from_secs(23), []);
        assert_eq!(rates.of(&upstream, &address), ServerRate::default());
        assert!(rates.0.is_empty());
    }
}
