//! The gateway's own log, through a real pipe.

use super::Field::{Flag, Number, Text};
use super::*;
use crate::clock::{ManualClock, Timestamp};
use proptest::prelude::*;
use std::fs::File;
use std::io::{Read, pipe};
use std::os::fd::OwnedFd;

/// What a log writes when `work` uses it at a fixed time.
fn written(level: Level, format: Format, work: impl FnOnce(&Log)) -> String {
    let (mut reader, writer) = pipe().unwrap();
    let sink = Sink::stream(File::from(OwnedFd::from(writer)), None).unwrap();
    let at = Timestamp::from_millis(1_767_323_045_678);
    let log = Log::to(sink, Clock::Manual(ManualClock::at(at)));
    log.configure(level, format);
    work(&log);
    drop(log);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn text_lines_are_for_people() {
    let text = written(Level::Info, Format::Text, |log| {
        let until = Rfc3339(Timestamp::from_secs(1_767_323_645));
        log.info(
            "banned",
            &[
                Text("rule", &"login-stuffing"),
                Text("key", &"203.0.113.7 t13d"),
                Flag("dry_run", false),
                Number("more", 3),
                Text("until", &until),
            ],
        );
        log.error("bad", &[Text("why", &"two\nlines \x1b[31m")]);
    });
    assert_eq!(
        text,
        "2026-01-02T03:04:05.678Z INFO  banned rule=login-stuffing key=\"203.0.113.7 t13d\" \
         dry_run=false more=3 until=2026-01-02T03:14:05.000Z\n\
         2026-01-02T03:04:05.678Z ERROR bad why=\"two\\nlines \\u{001b}[31m\"\n"
    );
}

#[test]
fn json_lines_are_for_machines() {
    let text = written(Level::Info, Format::Json, |log| {
        let fields = [
            Number("pid", 331),
            Number("most", u64::MAX),
            Flag("dry_run", true),
            Text("rule", &"5"),
            Text("s", &"a\nb"),
        ];
        log.warn("bad \"thing\"", &fields);
    });
    let line: serde_json::Value = serde_json::from_str(&text).unwrap();
    let wanted = serde_json::json!({
        "ts": "2026-01-02T03:04:05.678Z", "level": "warn", "event": "bad \"thing\"",
        "pid": 331, "most": u64::MAX, "dry_run": true, "rule": "5", "s": "a\nb",
    });
    assert_eq!(line, wanted);
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn lines_below_the_level_are_not_written() {
    let text = written(Level::Warn, Format::Text, |log| {
        assert!(!log.is_on(Level::Info));
        log.debug("debug", &[]);
        log.info("info", &[]);
        log.warn("warn", &[]);
        log.error("error", &[]);
    });
    let labels: Vec<&str> = text.lines().map(|l| &l[25..30]).collect();
    assert_eq!(labels, ["WARN ", "ERROR"]);
}

#[test]
fn a_log_that_is_off_takes_everything() {
    let log = Log::off();
    log.error("nobody hears", &[]);
    assert!(log.flush(Duration::ZERO));
    assert_eq!(log.dropped(), 0);
}

proptest! {
    #[test]
    fn no_control_character_comes_through(event in any::<String>(), value in any::<String>()) {
        let stamp = Rfc3339(Timestamp::default());
        let mut line = Vec::new();
        text(&mut line, stamp, Level::Info, &event, &[Text("v", &value)]);
        prop_assert!(!String::from_utf8(line).unwrap().chars().any(char::is_control));
        let mut line = Vec::new();
        json(&mut line, stamp, Level::Info, &event, &[Text("v", &value)]);
        let back: serde_json::Value = serde_json::from_slice(&line).unwrap();
        prop_assert_eq!(&back["v"], &serde_json::json!(value));
        prop_assert!(!String::from_utf8(line).unwrap().chars().any(char::is_control));
    }
}
