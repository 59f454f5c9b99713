//! Panics: a line in the log and a count for each, wherever it happens. What a panic costs is not
//! decided here.

use std::any::Any;
use std::panic::{self, PanicHookInfo};
use std::{env, thread};

use super::log::Field::Text;
use super::log::Log;
use super::metrics::Count;

/// From now on every panic of the process is told here, and no longer on the standard error stream,
/// but where `RUST_BACKTRACE` asks for that too.
pub fn tell_panics(log: &Log, count: &Count) {
    let (log, count) = (log.clone(), count.clone());
    let before = env::var_os("RUST_BACKTRACE").map(|_| panic::take_hook());
    panic::set_hook(Box::new(move |panic| {
        count.inc();
        tell(&log, panic);
        if let Some(before) = &before {
            before(panic);
        }
    }));
}

fn tell(log: &Log, panic: &PanicHookInfo<'_>) {
    let thread = thread::current();
    let at = panic.location().map(ToString::to_string);
    log.error(
        "panic",
        &[
            Text("thread", &thread.name().unwrap_or("-")),
            Text("at", &at.as_deref().unwrap_or("-")),
            Text("message", &harmless(message(panic.payload()))),
        ],
    );
}

fn message(payload: &dyn Any) -> Option<&str> {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref().map(String::as_str))
}

/// What stands between backticks is what was being worked on, which may be a client's secret.
fn harmless(message: Option<&str>) -> &str {
    let message = message.unwrap_or("-");
    message
        .split_once('`')
        .map_or(message, |(before, _)| before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_worked_on_is_not_told() {
        let of_std = "end byte index 1 is not a char boundary; it is inside 'é' of `émile:secret`";
        assert!(!harmless(Some(of_std)).contains("secret"));
        assert_eq!(harmless(Some("index out of bounds")), "index out of bounds");
        assert_eq!(harmless(None), "-");
    }
}
