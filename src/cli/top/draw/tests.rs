//! Screens as text.

use serde_json::json;

use super::*;
use crate::cli::top::model::{ListedRow, TopKey};
use crate::clock::Timestamp;

const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);

fn model() -> TopModel {
    let mut model = TopModel::new(NOW);
    model.take_status(json!({
        "version": "0.4.0", "instance": "edge-fra-1", "uptime_s": 1_044_140,
        "store": {"kind": "redis", "state": "ok"},
        "attention": [{"level": "crit", "text": "The last reload was refused", "detail": "gateway.toml:1:1: x."}],
    }));
    let rule = |name: &str| {
        json!({"name": name, "algorithm": "gcra", "limit": 5, "period": "1m", "action": "shadow", "duration": "10m",
            "keys": 1609, "bans": 419})
    };
    let rules: Vec<_> = (0..40)
        .map(|number| rule(&format!("rule-{number}")))
        .collect();
    model.take_rules(&json!(rules));
    model.take_tick(json!({
        "requests_per_s": 1897.0, "actions_per_s": {"forward": 1140.2, "block": 16.1, "close": 2.2}, "latency_ms": null,
        "connections": 8014, "rules": {"rule-0": {"matched_per_s": 622.0, "mitigated_per_s": 594.0}},
    }));
    model
}

fn screen(model: &TopModel, style: TopStyle, width: usize, height: usize) -> Vec<String> {
    let lines = lines(model, style, width, height);
    lines.iter().map(Line::to_string).collect()
}

#[test]
fn every_screen_fits_its_size() {
    for (width, height) in [(100, 30), (80, 24), (59, 24), (20, 5), (1, 1)] {
        for key in ["", "b", "o", "?", "/x"] {
            let mut model = model();
            key.chars()
                .for_each(|key| drop(model.press(TopKey::Char(key))));
            let lines = screen(&model, TopStyle::default(), width, height);
            assert!(
                lines.len() <= height.max(5),
                "{width} x {height}: {}",
                lines.len()
            );
        }
    }
}

#[test]
fn the_overview_shows_figures_attention_and_rules() {
    let lines = screen(&model(), TopStyle::default(), 120, 30);
    assert!(
        lines[0].starts_with("lockgate 0.4.0  edge-fra-1  up 12d 2h  "),
        "{}",
        lines[0]
    );
    assert!(
        lines[0].ends_with("22:13:20 UTC  ● live, every 1 s"),
        "{}",
        lines[0]
    );
    assert!(
        lines[2].starts_with("1897 requests/s   forwarded 1140  "),
        "{}",
        lines[2]
    );
    assert!(lines[2].contains("blocked 18  "), "{}", lines[2]);
    assert_eq!(
        lines[5],
        "▲ The last reload was refused. gateway.toml:1:1: x."
    );
    assert!(lines[7].starts_with(" RULE  "), "{}", lines[7]);
    assert!(lines[8].starts_with("▶rule-0  "), "{}", lines[8]);
    for cell in [" 5 / 1m ", " shadow ", " 622 ", " 594 ", " 1609 ", " 419"] {
        assert!(lines[8].contains(cell), "{cell}: {}", lines[8]);
    }
}

#[test]
fn columns_disappear_on_a_narrow_screen() {
    let header = |width| screen(&model(), TopStyle::default(), width, 24)[7].clone();
    assert!(header(100).contains("KEYS"));
    assert!(!header(95).contains("KEYS") && header(95).contains("15 MIN"));
    assert!(!header(80).contains("15 MIN") && header(80).contains("LIMIT"));
    assert!(!header(62).contains("LIMIT") && header(62).contains("BANS"));
    assert!(!header(59).contains("BANS"));
}

#[test]
fn the_table_scrolls_to_the_selected_row() {
    let mut model = model();
    for _ in 0..4 {
        model.press(TopKey::PageDown);
    }
    let lines = screen(&model, TopStyle::default(), 80, 24);
    assert!(lines[0].starts_with("lockgate"));
    assert!(
        lines.iter().any(|line| line.starts_with("▶rule-39 ")),
        "{lines:#?}"
    );
}

#[test]
fn ascii_screens_have_no_other_characters() {
    let style = TopStyle {
        has_color: false,
        is_ascii: true,
    };
    for key in ["", "?", "b"] {
        let mut model = model();
        key.chars()
            .for_each(|key| drop(model.press(TopKey::Char(key))));
        let text = screen(&model, style, 200, 40).concat();
        assert!(text.is_ascii(), "{text}");
    }
}

#[test]
fn a_lost_stream_is_said_in_words() {
    let mut model = model();
    model.set_now(NOW.plus(Duration::from_secs(12)));
    let head = screen(&model, TopStyle::default(), 120, 30)[0].clone();
    assert!(
        head.ends_with("○ lost, last update 12s ago, retrying"),
        "{head}"
    );
}

#[test]
fn text_of_clients_moves_no_cursor() {
    let mut model = model();
    model.press(TopKey::Char('b'));
    model.take_rows(vec![ListedRow {
        rule: "rule-0".into(),
        key: "\u{1b}[2J\r\n\u{202e}x".into(),
        object: json!({"cause": "\u{7}", "action": "block"}),
    }]);
    model.press(TopKey::Char('u'));
    let text = screen(&model, TopStyle::default(), 120, 30).concat();
    assert!(
        !text.chars().any(|c| c.is_control() || c == '\u{202e}'),
        "{text}"
    );
    assert!(text.contains("Unban \\u{1b}[2J"), "{text}");
}
