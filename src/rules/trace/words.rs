//! Texts for actions and durations.

use std::time::Duration;

use crate::decision::Action;

/// The past tense of an action.
pub(super) const fn past(action: Action) -> &'static str {
    match action {
        Action::Block => "blocked",
        Action::Shadow => "shadowed",
        Action::Divert => "diverted to another upstream",
        Action::Delay => "held",
        Action::Tarpit => "held and blocked",
        Action::Close => "closed without a response",
        Action::Tag => "tagged",
        Action::Log => "recorded",
        Action::Allow => "allowed",
        Action::Challenge => "challenged",
    }
}

/// A duration in configuration syntax, rounded up to seconds, in the largest unit that divides it.
pub(super) fn length(duration: Duration) -> String {
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    let units = [("d", 86_400), ("h", 3_600), ("m", 60)];
    let fits = units
        .iter()
        .find(|(_, unit)| seconds >= *unit && seconds.is_multiple_of(*unit));
    match fits {
        Some((name, unit)) => format!("{}{name}", seconds / unit),
        None => format!("{seconds}s"),
    }
}

/// A duration in configuration syntax, to the millisecond.
pub(super) fn span(duration: Duration) -> String {
    match duration.subsec_nanos() {
        0 => length(duration),
        _ => format!("{}ms", duration.as_nanos().div_ceil(1_000_000)),
    }
}
