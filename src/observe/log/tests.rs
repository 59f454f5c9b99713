//! The gateway's own log, through a real pipe.

use super::*;
use crate::clock::{ManualClock, Timestamp};
use proptest::prelude::*;
use std::fs::File;
use std::io::{Read, pipe};
use std::os::fd::OwnedFd;
use tracing::{debug, info, warn};

/// Returns what the log writes when `work` runs at a fixed time.
fn written(filter: &str, work: impl FnOnce(&LogHandle)) -> String {
    let (mut reader, writer) = pipe().unwrap();
    let sink = LineSink::stream(File::from(OwnedFd::from(writer))).unwrap();
    let at = Timestamp::from_millis(1_767_323_045_678);
    let (log, dispatch) = LogHandle::to(sink, Clock::Manual(ManualClock::at(at)), filter);
    tracing::dispatcher::with_default(&dispatch, || work(&log));
    drop((log, dispatch));
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn text_lines_are_readable() {
    let text = written("", |log| {
        log.configure(Level::INFO, LogOutput::Text);
        let until = Rfc3339(Timestamp::from_secs(1_767_323_645));
        let (key, dry_run) = ("203.0.113.7 t13d", false);
        info!(rule = "login-stuffing", key, dry_run, more = 3, %until, "banned");
        error!(why = "two\nlines \x1b[31m", message = "second", "bad");
    });
    assert_eq!(
        text,
        "2026-01-02T03:04:05.678Z INFO  banned rule=login-stuffing key=\"203.0.113.7 t13d\" \
         dry_run=false more=3 until=2026-01-02T03:14:05.000Z\n\
         2026-01-02T03:04:05.678Z ERROR bad why=\"two\\nlines \\u{001b}[31m\" message=second\n"
    );
}

#[test]
fn json_lines_are_valid_json() {
    let text = written("", |log| {
        log.configure(Level::INFO, LogOutput::Json);
        let (pid, most, s) = (331, u64::MAX, "a\nb");
        warn!(pid, most, dry_run = true, rule = %5, s, message = "m", "bad \"thing\"");
    });
    let line: serde_json::Value = serde_json::from_str(&text).unwrap();
    let wanted = serde_json::json!({
        "ts": "2026-01-02T03:04:05.678Z", "level": "warn", "event": "bad \"thing\"",
        "pid": 331, "most": u64::MAX, "dry_run": true, "rule": "5", "s": "a\nb", "message": "m",
    });
    assert_eq!(line, wanted);
    assert_eq!(text.lines().count(), 1);
}

/// Returns the messages of `text`.
fn messages(text: &str) -> Vec<&str> {
    text.lines().map(|line| &line[31..]).collect()
}

fn one_of_each() {
    debug!("debug");
    info!("info");
    warn!("warn");
    error!("error");
    debug!(target: "h2::codec", "frame");
    warn!(target: "h2::proto", "strange ping");
    debug!(target: "lockgate::upstream::pool", "upstream");
}

#[test]
fn lines_below_the_level_are_not_written() {
    let text = written("", |log| {
        log.configure(Level::WARN, LogOutput::Text);
        one_of_each();
        // As on a reload.
        log.configure(Level::ERROR, LogOutput::Text);
        one_of_each();
        log.configure(Level::DEBUG, LogOutput::Text);
        one_of_each();
    });
    let expected = "warn error error debug info warn error upstream";
    assert_eq!(messages(&text).join(" "), expected);
}

#[test]
fn the_environment_overrides_the_level_also_per_module() {
    let lines = |filter| {
        let text = written(filter, |log| {
            log.configure(Level::INFO, LogOutput::Text);
            one_of_each();
        });
        messages(&text).join(" ")
    };
    assert_eq!(lines("error"), "error");
    assert_eq!(lines("warn, upstream=debug"), "warn error upstream");
    assert_eq!(
        lines("lockgate::upstream=DEBUG"),
        "info warn error upstream"
    );
    assert_eq!(lines("off,h2=warn"), "strange ping");
    assert_eq!(lines("lockgate=error"), "error");
}

#[test]
fn a_bad_filter_is_reported_in_the_configured_format_and_ignored() {
    for (filter, error) in [
        (
            "warn,upstraem=debug",
            "`upstraem` is not a module; modules are ",
        ),
        (
            "lockgate::upstraem=debug",
            "`lockgate::upstraem` is not a module",
        ),
        (
            "upstream=loud",
            "`loud` is not a level; levels are off, error",
        ),
        ("upstream", "`upstream` is not a level"),
        ("3", "`3` is not a level"),
    ] {
        let text = written(filter, |log| {
            for _ in 0..2 {
                log.configure(Level::ERROR, LogOutput::Json);
            }
            warn!("not written");
        });
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["event"], "log filter ignored");
        assert_eq!(line["variable"], "LOCKGATE_LOG");
        assert!(line["error"].as_str().unwrap().starts_with(error), "{line}");
    }
}

#[test]
fn a_filter_can_name_every_module() {
    let declared = include_str!("../../lib.rs").lines();
    let declared = declared.filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    let mut declared: Vec<&str> = declared.collect();
    declared.sort_unstable();
    assert_eq!(declared.join(" "), MODULES);
}

#[test]
fn json_is_the_format_where_there_is_no_terminal() {
    let text = written("", |log| {
        info!("first");
        assert!(log.is_json() && log.format() == LogOutput::Auto);
        log.configure(Level::INFO, LogOutput::Auto);
        info!("second");
    });
    assert!(text.lines().all(|line| line.starts_with('{')), "{text}");
}

#[test]
fn a_disabled_log_accepts_every_line() {
    let log = LogHandle::off();
    log.configure(Level::INFO, LogOutput::Json);
    assert!(log.flush(Duration::ZERO));
    assert_eq!((log.dropped(), log.is_json()), (0, false));
}

#[test]
fn a_panic_is_logged_without_the_values_of_clients() {
    let of_std = "end byte index 1 is not a char boundary; it is inside 'é' of `émile:secret`";
    assert!(!without_values(of_std).contains("secret"));
    assert_eq!(without_values("index out of bounds"), "index out of bounds");
}

proptest! {
    #[test]
    fn no_control_character_is_written(event in any::<String>(), value in any::<String>()) {
        let write = |format| {
            written("", |log| {
                log.configure(Level::INFO, format);
                info!(v = value, "{event}");
            })
        };
        let has_control = |line: &str| line.trim_end_matches('\n').chars().any(char::is_control);
        prop_assert!(!has_control(&write(LogOutput::Text)));
        let line = write(LogOutput::Json);
        let back: serde_json::Value = serde_json::from_str(&line).unwrap();
        prop_assert_eq!((&back["event"], &back["v"]), (&event.into(), &value.as_str().into()));
        prop_assert!(!has_control(&line));
    }
}
