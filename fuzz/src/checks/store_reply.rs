//! Any reply of the shared store: it is refused, or its results belong to steps of the plan.

use lockgate::rules::plan::KeyStatus;
use lockgate::store::redis::read_reply;

/// Reads the bytes as the reply to a plan with one to eight steps. The first byte selects the number.
pub fn store_reply(data: &[u8]) {
    let Some((first, reply)) = data.split_first() else {
        return;
    };
    let steps = usize::from(first % 8) + 1;
    let Some(result) = read_reply(reply, steps) else {
        return;
    };
    assert!(result.steps.len() <= 2 * steps);
    for read in &result.steps {
        assert!(usize::from(read.step) < steps);
        if let KeyStatus::Banned { until, .. } = read.status {
            assert!(until >= result.at);
        }
    }
}
