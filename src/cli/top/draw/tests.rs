//! Screens as text. The golden files are in `tests/data/top/`; `UPDATE_GOLDEN=1` writes them.

mod fixture;

use std::path::Path;
use std::time::Duration;
use std::{env, fs};

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value, json};

use self::fixture::{NOW, attacked, client, decisions, explained, opened_rule};
use super::*;
use crate::cli::top::command::{ChangeResult, TopKey};
use crate::cli::top::screen::{ListedRow, RowKind, ScreenFigures};

const PLAIN: TopStyle = TopStyle {
    has_color: false,
    is_ascii: false,
};
const ASCII: TopStyle = TopStyle {
    has_color: false,
    is_ascii: true,
};

/// The characters that a terminal of this size shows.
fn screen(model: &TopModel, style: TopStyle, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, model, style)).unwrap();
    let buffer = terminal.backend().buffer();
    let rows = buffer.content().chunks(width.into());
    let text = rows.map(|row| {
        row.iter()
            .map(ratatui::buffer::Cell::symbol)
            .collect::<String>()
    });
    text.map(|line| line.trim_end().to_owned()).collect()
}

#[track_caller]
fn assert_golden(name: &str, lines: &[String]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/top");
    let (path, text) = (folder.join(format!("{name}.txt")), lines.join("\n") + "\n");
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(&folder).unwrap();
        fs::write(&path, &text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, golden, "{name}: UPDATE_GOLDEN=1 writes it");
}

fn press(model: &mut TopModel, keys: &str) {
    keys.chars()
        .for_each(|key| drop(model.press(TopKey::Char(key))));
}

#[test]
fn the_overview_looks_as_in_its_golden_files() {
    let model = attacked();
    assert_golden("overview-100x30", &screen(&model, PLAIN, 100, 30));
    assert_golden("overview-80x24", &screen(&model, PLAIN, 80, 24));
    assert_golden("overview-50x20", &screen(&model, PLAIN, 50, 20));
    assert_golden("overview-ascii", &screen(&model, ASCII, 100, 30));
}

#[test]
fn a_rule_looks_as_in_its_golden_files() {
    let mut model = opened_rule();
    press(&mut model, "u");
    assert_golden("rule-100x30", &screen(&model, PLAIN, 100, 30));
    assert_golden("rule-80x24", &screen(&model, PLAIN, 80, 24));
    assert_golden("rule-50x20", &screen(&model, PLAIN, 50, 20));
    assert_golden("rule-ascii", &screen(&model, ASCII, 100, 30));
}

#[test]
fn other_screens_look_as_in_their_golden_files() {
    assert_golden("decisions-100x30", &screen(&decisions(), PLAIN, 100, 30));
    assert_golden("decisions-80x24", &screen(&decisions(), PLAIN, 80, 24));
    assert_golden("client-100x30", &screen(&client(), PLAIN, 100, 30));
    assert_golden("client-80x24", &screen(&client(), PLAIN, 80, 24));
    assert_golden("explanation-80x24", &screen(&explained(), PLAIN, 80, 24));
    let mut model = attacked();
    press(&mut model, "?");
    assert_golden("help-80x24", &screen(&model, PLAIN, 80, 24));
    press(&mut model, "b");
    fixture::give_bans(&mut model);
    assert_golden("bans-80x24", &screen(&model, PLAIN, 80, 24));
    model.press(TopKey::Enter);
    fixture::give_bans(&mut model);
    assert_golden("ban-80x24", &screen(&model, PLAIN, 80, 24));
    press(&mut model, "o");
    fixture::give_servers(&mut model);
    assert_golden("upstreams-80x24", &screen(&model, PLAIN, 80, 24));
    model.press(TopKey::Enter);
    fixture::give_servers(&mut model);
    assert_golden("server-80x24", &screen(&model, PLAIN, 80, 24));
}

#[test]
fn every_screen_fits_every_size() {
    for (width, height) in [(200, 60), (80, 24), (59, 24), (20, 5), (3, 2), (1, 1)] {
        let mut models = vec![
            attacked(),
            opened_rule(),
            decisions(),
            client(),
            explained(),
            TopModel::new(NOW),
        ];
        for key in ["b", "o", "?", "/x", "f", "d"] {
            let mut model = attacked();
            press(&mut model, key);
            models.push(model);
        }
        for model in models {
            let area = DrawArea {
                width: width.into(),
                height: height.into(),
                style: PLAIN,
            };
            let lines = lines(&model, area);
            let wide = lines.iter().find(|line| line.width() > area.width);
            // The rows of a table keep a minimum width and are cut by the terminal.
            assert!(width < 59 || wide.is_none(), "{width}: {wide:?}");
            assert!(lines.len() <= area.height.max(2), "{width} x {height}");
            screen(&model, PLAIN, width, height);
        }
    }
}

#[test]
fn columns_disappear_on_a_narrow_screen() {
    let has = |width, column: &str| {
        let lines = screen(&attacked(), PLAIN, width, 30);
        let header = lines.iter().find(|line| line.starts_with(" RULE"));
        header.unwrap().contains(column)
    };
    assert!(has(98, "KEYS") && !has(97, "KEYS"));
    assert!(has(80, "15 MIN") && !has(79, "15 MIN"));
    assert!(has(71, "LIMIT") && !has(70, "LIMIT"));
    assert!(has(60, "ACTION") && !has(59, "ACTION"));
    assert!(has(44, "BANS") && !has(43, "BANS"));
}

#[test]
fn the_table_scrolls_and_the_head_and_the_attention_entries_stay() {
    let mut model = attacked();
    let rule = |number: usize| json!({"name": format!("rule-{number}"), "action": "block"});
    model.take_rules(&(0..1_000).map(rule).collect());
    for _ in 0..200 {
        model.press(TopKey::PageDown);
    }
    let lines = screen(&model, PLAIN, 80, 24);
    assert!(lines[0].starts_with("lockgate"));
    let starts = |text: &str| lines.iter().any(|line| line.starts_with(text));
    assert!(starts("▶rule-999 "), "{lines:#?}");
    assert!(starts("▲ "), "{lines:#?}");
}

#[test]
fn ascii_screens_have_no_other_characters() {
    for mut model in [
        attacked(),
        opened_rule(),
        decisions(),
        client(),
        explained(),
    ] {
        for key in ["", "p", "?"] {
            press(&mut model, key);
            let text = screen(&model, ASCII, 200, 60).concat();
            assert!(text.is_ascii(), "{text}");
        }
    }
}

#[test]
fn colours_are_used_only_if_wanted() {
    let colors = |style| {
        let mut terminal = Terminal::new(TestBackend::new(100, 30)).unwrap();
        let model = attacked();
        terminal.draw(|frame| draw(frame, &model, style)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let reset = ratatui::style::Color::Reset;
        let cells = buffer.content().iter();
        cells
            .filter(|cell| cell.fg != reset || cell.bg != reset)
            .count()
    };
    let colored = TopStyle {
        has_color: true,
        is_ascii: false,
    };
    assert!(colors(colored) > 50);
    assert_eq!(colors(PLAIN), 0);
}

#[test]
fn a_lost_stream_dims_everything_but_the_head() {
    let mut model = attacked();
    model.set_now(NOW.plus(Duration::from_secs(12)));
    model.take_lost(NOW.plus(Duration::from_secs(15)), "refused".into());
    let lines = screen(&model, PLAIN, 100, 30);
    let head = &lines[0];
    assert!(
        head.ends_with("○ lost, last update 12 s ago, retrying in 3 s"),
        "{head}"
    );
    assert!(lines[27].starts_with("refused"), "{lines:#?}");
    let narrow = &screen(&model, PLAIN, 62, 24)[0];
    assert!(narrow.contains("○ lost, last update 12 s ago"), "{narrow}");
    let area = DrawArea {
        width: 100,
        height: 30,
        style: PLAIN,
    };
    let drawn = super::lines(&model, area);
    let is_dim = |line: &Line<'_>| {
        line.style
            .add_modifier
            .contains(ratatui::style::Modifier::DIM)
    };
    assert!(!is_dim(&drawn[0]) && drawn[1..].iter().skip(1).all(is_dim));
}

#[test]
fn a_paused_screen_says_so_and_a_result_is_shown() {
    let mut model = attacked();
    press(&mut model, "p");
    model.set_now(NOW.plus(Duration::from_secs(3)));
    model.take_result(ChangeResult {
        text: "203.0.113.42 is unbanned. z undoes.".into(),
        undo: None,
    });
    let lines = screen(&model, PLAIN, 100, 30);
    assert!(lines[0].ends_with("paused, 3 s"), "{}", lines[0]);
    assert_eq!(lines[27], "203.0.113.42 is unbanned. z undoes.");
}

#[test]
fn an_empty_gateway_has_no_rules_and_no_bans() {
    let mut model = TopModel::new(NOW);
    assert!(screen(&model, PLAIN, 80, 24)[0].starts_with("lockgate  "));
    model.take_status(json!({"version": "0.4.0", "instance": "edge"}));
    let text = screen(&model, PLAIN, 80, 24).join("\n");
    assert!(text.contains("There are no rules"), "{text}");
    press(&mut model, "b");
    let bans = model.screen.clone();
    let figures = ScreenFigures {
        rows: Some(Vec::new()),
        about: Some(json!({"total": 0})),
        error: None,
    };
    model.take_figures(&bans, figures);
    let text = screen(&model, PLAIN, 80, 24).join("\n");
    assert!(text.contains("No active bans."), "{text}");
}

#[test]
fn a_ban_of_a_dry_run_says_what_it_would_do() {
    let mut model = TopModel::new(NOW);
    press(&mut model, "b");
    let ban = json!({"rule": "scan", "key": "a", "action": "block", "dry_run": true});
    let figures = ScreenFigures {
        rows: Some(vec![ListedRow::of(RowKind::Ban, &ban)]),
        about: Some(json!({"total": 1})),
        error: None,
    };
    model.take_figures(&model.screen.clone(), figures);
    let text = screen(&model, PLAIN, 100, 24).join("\n");
    assert!(text.contains("would block"), "{text}");
    assert!(text.contains("dry run, mitigates nothing"), "{text}");
}

#[test]
fn text_of_clients_moves_no_cursor() {
    let evil = "\u{1b}[2J\r\n\u{202e}x";
    let object = json!({"rule": "one", "key": evil, "cause": evil, "action": evil, "id": evil, "path": evil,
        "method": evil, "user_agent": evil, "client_ip": evil, "country": evil, "host": evil, "query": evil,
        "note": evil, "sample": {"method": evil, "url": evil}, "reason": evil, "health": evil, "state": evil});
    let about = json!({"ip": evil, "as_name": evil, "request": evil, "notes": [evil], "rule": {"distribution": null},
        "rules": [{"name": evil, "why": evil, "verdict": evil, "key": evil}], "decision": evil, "reason": evil,
        "common": [{"rule": evil, "field": evil, "value": evil}], "bans": {"common": []}});
    let mut model = attacked();
    model.take_status(
        json!({"version": evil, "instance": evil, "attention": [{"text": evil, "detail": evil}]}),
    );
    let screens = [
        ("b", RowKind::Ban),
        ("o", RowKind::Server),
        ("/one\n", RowKind::HotKey),
        ("/evil\n", RowKind::Decision),
    ];
    for (keys, kind) in screens {
        for key in keys.chars() {
            let key = if key == '\n' {
                TopKey::Enter
            } else {
                TopKey::Char(key)
            };
            model.press(key);
        }
        let row = ListedRow::of(kind, &object);
        let figures = ScreenFigures {
            rows: Some(vec![row]),
            about: Some(about.clone()),
            error: None,
        };
        model.take_figures(&model.screen.clone(), figures);
        for opened in ["", "u", "n", "\n", "x"] {
            for key in opened.chars() {
                let key = if key == '\n' {
                    TopKey::Enter
                } else {
                    TopKey::Char(key)
                };
                model.press(key);
            }
            let area = DrawArea {
                width: 200,
                height: 60,
                style: PLAIN,
            };
            let text: String = lines(&model, area).iter().map(Line::to_string).collect();
            let is_evil = |c: char| c.is_control() || c == '\u{202e}';
            assert!(!text.chars().any(is_evil), "{keys}: {text:?}");
        }
    }
    let _: Value = object;
}
