//! Any reply of the shared store to a report of async mode: it is refused, or its records can be counted with.

use std::time::Duration;

use lockgate::clock::Timestamp;
use lockgate::limit::{Algorithm, Limiter, ShareRatio};
use lockgate::store::async_mode::{FleetInfo, KeyState};
use lockgate::store::redis::read_sync_reply;

const ALGORITHMS: [Algorithm; 4] = [
    Algorithm::SlidingWindow,
    Algorithm::FixedWindow,
    Algorithm::TokenBucket,
    Algorithm::Gcra,
];

/// Reads the bytes as a reply. The first one selects the limiter, the next two the lengths of the first two strings.
pub fn sync_reply(data: &[u8]) {
    let [choice, packed, bans, rest @ ..] = data else {
        return;
    };
    let algorithm = ALGORITHMS[usize::from(choice % 4)];
    let slices = if choice & 4 == 0 { 1 } else { 12 };
    // Only these can have a ratio.
    let has_windows = matches!(algorithm, Algorithm::SlidingWindow | Algorithm::FixedWindow);
    let has_ratio = choice & 8 != 0 && has_windows && slices == 1;
    let limiter = Limiter {
        slices,
        ratio: has_ratio.then(|| ShareRatio::nearest(0.4)),
        ..Limiter::new(algorithm, 100, Duration::from_secs(60))
    };
    let (packed, rest) = rest.split_at(usize::from(*packed).min(rest.len()));
    let (bans, exhausted) = rest.split_at(usize::from(*bans).min(rest.len()));
    let Some(views) = read_sync_reply([packed, bans, exhausted], &limiter) else {
        return;
    };
    let fleet = FleetInfo {
        nodes: 10,
        sync_interval: Duration::from_millis(100),
    };
    for view in views {
        let mut state = KeyState::new(&limiter);
        let now = view.at;
        state.charge(&limiter, now, 3, &fleet);
        state.confirm(&limiter, now, view.clone());
        state.learn(&limiter, now, view);
        for seconds in [0, 59, 61, 1_000_000_000] {
            let later = now.plus(Duration::from_secs(seconds));
            state.decide(&limiter, later, 1, &fleet, 0.5);
            state.peek(&limiter, Timestamp::from_secs(seconds), 1);
        }
        let report = state.take_report(&limiter, now, &fleet);
        assert!(report.is_some());
    }
}
