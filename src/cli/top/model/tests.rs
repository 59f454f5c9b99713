//! What keys and events do, without a terminal.

use serde_json::json;

use super::*;
use crate::cli::top::command::{BanTarget, GatewayChange, TopKey};
use crate::cli::top::screen::{BanSearch, ExplainSubject, RowKind, StreamFilter};

const START: Timestamp = Timestamp::from_secs(1_700_000_000);

fn rule(name: &str) -> Value {
    json!({"name": name, "algorithm": "gcra", "limit": 5, "period": "1m", "action": "block", "keys": 1, "bans": 0,
        "duration": "20m"})
}

fn model() -> TopModel {
    let mut model = TopModel::new(START);
    model.take_rules(&json!([rule("one"), rule("two"), rule("three")]));
    model
}

fn names(model: &TopModel) -> Vec<&str> {
    model.rules.iter().map(|row| row.name.as_str()).collect()
}

fn press(model: &mut TopModel, keys: &str) -> Option<TopCommand> {
    let mut last = None;
    for key in keys.chars() {
        last = model.press(TopKey::Char(key));
    }
    last
}

fn later(model: &mut TopModel, seconds: u64) {
    let now = model.now.plus(Duration::from_secs(seconds));
    model.set_now(now);
}

fn tick(two: f64) -> Value {
    json!({"ts": "2026-11-18T03:14:07.480Z", "rules": {"two": {"matched_per_s": 9.0, "mitigated_per_s": two}}})
}

/// Shows these rows on the open screen.
fn give(model: &mut TopModel, rows: Vec<ListedRow>) {
    give_about(model, rows, Value::Null);
}

fn give_about(model: &mut TopModel, rows: Vec<ListedRow>, about: Value) {
    let screen = model.screen.clone();
    model.take_figures(
        &screen,
        ScreenFigures {
            rows: Some(rows),
            about: Some(about),
            error: None,
        },
    );
}

fn ban(key: &str) -> ListedRow {
    ListedRow::of(
        RowKind::Ban,
        &json!({"rule": "two", "key": key, "id": format!("id of {key}")}),
    )
}

fn target(key: &str) -> BanTarget {
    BanTarget {
        rule: "two".into(),
        key: key.into(),
        id: Some(format!("id of {key}")),
    }
}

fn hot_key(key: &str, banned_until: Value) -> ListedRow {
    ListedRow {
        kind: RowKind::HotKey,
        rule: "two".into(),
        key: key.into(),
        object: json!({"key": key, "banned_until": banned_until, "sample": {"method": "GET", "url": "/"}}),
    }
}

fn decision(id: &str) -> Value {
    json!({"id": id, "client_ip": "203.0.113.7", "method": "GET", "host": "a", "path": format!("/{id}"), "rule": "two",
        "action": "block", "key": "203.0.113.7", "banned": true})
}

#[test]
fn q_goes_back_and_then_quits() {
    let mut model = model();
    assert_eq!(model.press(TopKey::Enter), Some(TopCommand::Refresh));
    assert_eq!(model.screen, TopScreen::Rule("one".into()));
    assert_eq!(press(&mut model, "q"), Some(TopCommand::Refresh));
    assert_eq!(model.screen, TopScreen::Overview);
    assert_eq!(model.press(TopKey::Esc), None);
    assert_eq!(press(&mut model, "q"), Some(TopCommand::Quit));
    press(&mut model, "/q");
    assert_eq!(model.press(TopKey::CtrlC), Some(TopCommand::Quit));
}

#[test]
fn esc_goes_back_to_the_row_that_was_selected() {
    let mut model = model();
    press(&mut model, "b");
    give(&mut model, vec![ban("a"), ban("b"), ban("c")]);
    press(&mut model, "jj");
    model.press(TopKey::Enter);
    let screen = TopScreen::Ban {
        rule: "two".into(),
        key: "c".into(),
    };
    assert_eq!(model.screen, screen);
    press(&mut model, "?");
    model.press(TopKey::Esc);
    assert_eq!(model.screen, screen);
    model.press(TopKey::Esc);
    give(&mut model, vec![ban("new"), ban("a"), ban("b"), ban("c")]);
    assert_eq!(model.selected_row().unwrap().key, "c");
    for _ in 0..100 {
        press(&mut model, "?obd");
    }
    assert_eq!(model.back.len(), 2, "the overview and the bans");
}

#[test]
fn the_selection_follows_the_rule_and_not_the_line() {
    let mut model = model();
    model.press(TopKey::Down);
    assert_eq!(model.selected_index(), 1);
    model.take_tick(tick(7.0));
    press(&mut model, "s");
    assert_eq!(names(&model), ["two", "one", "three"]);
    assert_eq!(model.selected_index(), 0);
    press(&mut model, "S");
    assert_eq!(names(&model), ["three", "one", "two"]);
    assert_eq!(model.selected_index(), 2);
    assert_eq!(model.sort_name(), "most mitigated, reversed");
    model.press(TopKey::PageDown);
    assert_eq!(model.selected_index(), 2);
}

#[test]
fn a_row_that_disappears_leaves_its_line_selected() {
    let mut model = model();
    press(&mut model, "b");
    give(&mut model, vec![ban("a"), ban("b"), ban("c")]);
    press(&mut model, "j");
    give(&mut model, vec![ban("a"), ban("c")]);
    assert_eq!(model.selected_row().unwrap().key, "c");
    give(&mut model, vec![]);
    assert_eq!(model.selected_row(), None);
}

#[test]
fn a_table_is_sorted_at_most_every_ten_seconds() {
    let mut model = model();
    press(&mut model, "s");
    later(&mut model, 1);
    model.take_tick(tick(7.0));
    model.take_rules(&json!([rule("one"), rule("two"), rule("three")]));
    assert_eq!(names(&model), ["one", "two", "three"]);
    later(&mut model, 9);
    press(&mut model, "r");
    model.take_tick(tick(7.0));
    assert_eq!(names(&model), ["one", "two", "three"], "a question is open");
    press(&mut model, "n");
    later(&mut model, 1);
    model.take_tick(tick(7.0));
    assert_eq!(names(&model), ["two", "one", "three"]);
    model.take_rules(&json!([rule("one"), rule("two"), rule("three")]));
    assert_eq!(names(&model), ["two", "one", "three"]);
    model.take_rules(&json!([rule("four"), rule("two")]));
    assert_eq!(
        names(&model),
        ["two", "four"],
        "other rules are sorted at once"
    );
}

#[test]
fn arrows_lead_to_the_neighbouring_rules() {
    let mut model = model();
    model.press(TopKey::Enter);
    assert_eq!(model.press(TopKey::Left), None);
    model.press(TopKey::Right);
    assert_eq!(model.screen, TopScreen::Rule("two".into()));
    model.press(TopKey::Esc);
    assert_eq!(
        (&model.screen, model.selected_index()),
        (&TopScreen::Overview, 1)
    );
}

#[test]
fn an_unban_asks_first_and_can_be_undone_for_ten_seconds() {
    let mut model = model();
    press(&mut model, "b");
    give(&mut model, vec![ban("203.0.113.7"), ban("203.0.113.42")]);
    model.press(TopKey::Down);
    assert_eq!(press(&mut model, "u"), None);
    assert_eq!(press(&mut model, "xn"), None);
    assert_eq!(model.prompt, None);
    let change = GatewayChange::Release {
        name: "203.0.113.42".into(),
        bans: vec![target("203.0.113.42")],
        exempt: None,
    };
    assert_eq!(press(&mut model, "uy"), Some(TopCommand::Change(change)));
    let undo = UndoneChange {
        restored: vec![json!({"rule": "two", "key": "203.0.113.42"})],
        ..UndoneChange::default()
    };
    let result = ChangeResult {
        text: "203.0.113.42 is unbanned. z undoes.".into(),
        undo: Some(undo.clone()),
    };
    model.take_result(result.clone());
    later(&mut model, 9);
    assert!(model.notice().unwrap().contains("z undoes"));
    let change = TopCommand::Change(GatewayChange::Undo(undo));
    assert_eq!(press(&mut model, "z"), Some(change));
    assert_eq!(press(&mut model, "z"), None);
    model.take_result(result);
    later(&mut model, 10);
    assert_eq!(model.notice(), None);
    assert_eq!(press(&mut model, "z"), None, "the notice is gone");
}

#[test]
fn a_key_without_a_ban_cannot_be_unbanned() {
    let mut model = model();
    model.press(TopKey::Enter);
    model.press(TopKey::Right);
    let until = json!("2026-11-18T03:21:21.480Z");
    give(
        &mut model,
        vec![hot_key("a", Value::Null), hot_key("b", until)],
    );
    press(&mut model, "u");
    assert_eq!(model.prompt, None);
    assert_eq!(model.notice(), Some("a is not banned."));
    assert_eq!(model.described_key(), None);
    // The cause of the ban is read at once.
    assert_eq!(press(&mut model, "j"), Some(TopCommand::Refresh));
    assert_eq!(model.described_key(), Some("b"));
    press(&mut model, "u");
    assert!(matches!(model.prompt, Some(TopPrompt::Confirm { .. })));
}

#[test]
fn a_ban_by_hand_asks_for_a_duration() {
    let mut model = model();
    assert_eq!(press(&mut model, "Bu"), None);
    assert_eq!(model.prompt, None, "a rule is not a key");
    press(&mut model, "b");
    give(&mut model, vec![ban("203.0.113.7")]);
    press(&mut model, "B");
    let text = "20m".to_owned();
    let target = target("203.0.113.7");
    let asked = TopPrompt::Duration {
        target: target.clone(),
        text,
    };
    assert_eq!(model.prompt, Some(asked), "the ban length of the rule");
    for _ in 0..3 {
        model.press(TopKey::Backspace);
    }
    press(&mut model, "1h");
    let ban = GatewayChange::Ban {
        target,
        duration: "1h".into(),
    };
    assert_eq!(model.press(TopKey::Enter), Some(TopCommand::Change(ban)));
}

#[test]
fn a_search_opens_a_rule_or_a_client() {
    let mut model = model();
    press(&mut model, "/two");
    model.press(TopKey::Enter);
    assert_eq!(model.screen, TopScreen::Rule("two".into()));
    press(&mut model, "/ 203.0.113.7 ");
    assert_eq!(model.press(TopKey::Enter), Some(TopCommand::Refresh));
    assert_eq!(model.screen, TopScreen::Client("203.0.113.7".into()));
    give_about(&mut model, vec![], json!({"unknown": "nothing"}));
    model.press(TopKey::Enter);
    let search = BanSearch {
        text: Some("203.0.113.7".into()),
        ..BanSearch::default()
    };
    assert_eq!(model.screen, TopScreen::Bans(search));
    model.press(TopKey::Esc);
    assert_eq!(model.screen, TopScreen::Client("203.0.113.7".into()));
    press(&mut model, "/x");
    assert_eq!(model.press(TopKey::Esc), None);
    assert_eq!(model.prompt, None);
}

#[test]
fn all_bans_of_a_client_are_removed_and_it_is_exempt() {
    let mut model = model();
    press(&mut model, "/203.0.113.7");
    model.press(TopKey::Enter);
    let bans = [ban("203.0.113.7"), ban("203.0.113.7 curl")];
    let client = json!({"ip": "203.0.113.7", "bans": bans.clone().map(|row| row.object)});
    give_about(&mut model, bans.to_vec(), client);
    press(&mut model, "U");
    let Some(TopPrompt::Confirm { question, .. }) = &model.prompt else {
        panic!("{:?}", model.prompt);
    };
    assert_eq!(
        question,
        "Unban 203.0.113.7, 2 keys, and exempt it for 1 h?"
    );
    let change = |exempt| {
        Some(TopCommand::Change(GatewayChange::Release {
            name: "203.0.113.7".into(),
            bans: vec![target("203.0.113.7"), target("203.0.113.7 curl")],
            exempt,
        }))
    };
    assert_eq!(
        press(&mut model, "y"),
        change(Some("203.0.113.7".to_owned()))
    );
    assert_eq!(press(&mut model, "uy"), change(None));
    give_about(&mut model, vec![], json!({"ip": null, "bans": []}));
    press(&mut model, "U");
    assert_eq!(model.notice(), Some("Only an address can be exempted."));
}

#[test]
fn the_client_of_a_key_is_its_address_or_the_key() {
    let mut model = model();
    press(&mut model, "b");
    give(&mut model, vec![ban("203.0.113.7 t13i"), ban("h:01 t13i")]);
    press(&mut model, "w");
    assert_eq!(model.screen, TopScreen::Client("203.0.113.7".into()));
    model.press(TopKey::Esc);
    give(&mut model, vec![ban("203.0.113.7 t13i"), ban("h:01 t13i")]);
    press(&mut model, "jw");
    assert_eq!(model.screen, TopScreen::Client("h:01 t13i".into()));
}

#[test]
fn decisions_are_those_of_the_open_rule_or_client() {
    let mut model = model();
    press(&mut model, "d");
    let all = StreamFilter::default();
    assert_eq!(model.screen, TopScreen::Decisions(all.clone()));
    model.take_decision(&all, decision("1"));
    model.take_decision(&all, decision("2"));
    assert_eq!(model.selected_row().unwrap().object["id"], "2");
    model.take_decision(&all, decision("3"));
    assert_eq!(
        model.selected_row().unwrap().object["id"],
        "3",
        "the newest"
    );
    press(&mut model, "j");
    model.take_decision(&all, decision("4"));
    assert_eq!(
        model.selected_row().unwrap().object["id"],
        "2",
        "as selected"
    );
    model.press(TopKey::Esc);
    model.press(TopKey::Enter);
    press(&mut model, "d");
    let of_rule = StreamFilter {
        rule: Some("one".into()),
        ip: None,
    };
    assert_eq!(model.decisions.filter, of_rule);
    assert!(model.decisions.rows.is_empty());
    model.take_decision(&all, decision("5"));
    assert!(model.decisions.rows.is_empty(), "of the stream before");
    press(&mut model, "/203.0.113.7");
    model.press(TopKey::Enter);
    give_about(&mut model, vec![], json!({"ip": "203.0.113.7"}));
    press(&mut model, "d");
    let of_client = StreamFilter {
        rule: None,
        ip: Some("203.0.113.7".into()),
    };
    assert_eq!(model.decisions.filter, of_client);
}

#[test]
fn keys_bans_and_decisions_are_explained() {
    let mut model = model();
    press(&mut model, "d");
    model.take_decision(&StreamFilter::default(), decision("1"));
    press(&mut model, "x");
    let TopScreen::Explanation(ExplainSubject::Request(request)) = &model.screen else {
        panic!("{:?}", model.screen);
    };
    assert_eq!(request["url"], "http://a/1");
    model.press(TopKey::Esc);
    press(&mut model, "b");
    give(&mut model, vec![ban("h:01")]);
    press(&mut model, "x");
    let subject = ExplainSubject::Ban {
        rule: "two".into(),
        key: "h:01".into(),
    };
    assert_eq!(model.screen, TopScreen::Explanation(subject));
    press(&mut model, "/two");
    model.press(TopKey::Enter);
    give(&mut model, vec![hot_key("h:01", Value::Null)]);
    press(&mut model, "x");
    let request = json!({"method": "GET", "url": "/", "keys": {"two": "h:01"}});
    let subject = ExplainSubject::Request(request);
    assert_eq!(model.screen, TopScreen::Explanation(subject));
    model.press(TopKey::Esc);
    let mut unknown = hot_key("a", Value::Null);
    unknown.object["sample"] = Value::Null;
    give(&mut model, vec![unknown]);
    press(&mut model, "x");
    assert_eq!(model.notice(), Some("No request with this key is known."));
}

#[test]
fn figures_of_another_screen_are_dropped() {
    let mut model = model();
    press(&mut model, "b");
    let bans = model.screen.clone();
    press(&mut model, "o");
    let figures = |key: &str| ScreenFigures {
        rows: Some(vec![ban(key)]),
        about: None,
        error: None,
    };
    model.take_figures(&bans, figures("a"));
    assert_eq!(model.figures, ScreenFigures::default());
    press(&mut model, "b");
    model.take_figures(&bans, figures("a"));
    press(&mut model, "u");
    model.take_figures(&bans, figures("b"));
    assert_eq!(model.selected_row().unwrap().key, "a", "a question is open");
    press(&mut model, "n");
    let failed = ScreenFigures {
        error: Some("cannot reach the gateway".into()),
        ..ScreenFigures::default()
    };
    model.take_figures(&bans, failed);
    assert_eq!(
        model.selected_row().unwrap().key,
        "a",
        "the last state stays"
    );
    assert!(model.figures.error.is_some());
}

#[test]
fn a_paused_screen_stands_still_and_the_stream_stays_live() {
    let mut model = model();
    model.take_tick(tick(1.0));
    let time = model.gateway_now();
    press(&mut model, "p");
    later(&mut model, 12);
    model.take_tick(tick(7.0));
    model.take_decision(&StreamFilter::default(), decision("1"));
    model.take_status(json!({"version": "1"}));
    assert_eq!(model.paused_for(), Some(Duration::from_secs(12)));
    assert_eq!(model.gateway_now(), time);
    assert_eq!(model.lost(), None);
    assert_eq!(model.rules[1].mitigated_per_s, 1.0);
    assert_eq!((model.decisions.missed, model.decisions.rows.len()), (1, 0));
    assert_eq!(model.status, Value::Null);
    press(&mut model, "b");
    give(&mut model, vec![ban("a")]);
    assert!(
        model.selected_row().is_some(),
        "another screen is read once"
    );
    assert_eq!(press(&mut model, "p"), Some(TopCommand::Refresh));
    model.take_tick(tick(7.0));
    assert_eq!(model.rules[1].mitigated_per_s, 7.0);
}

#[test]
fn a_stream_without_a_tick_for_four_seconds_is_lost() {
    let mut model = model();
    later(&mut model, 3);
    assert_eq!(model.lost(), None);
    later(&mut model, 1);
    let retry_at = model.now.plus(Duration::from_secs(3));
    model.take_lost(retry_at, "refused".into());
    let lost = LostStream {
        silence: Duration::from_secs(4),
        retry_in: Some(Duration::from_secs(3)),
        reason: "refused",
    };
    assert_eq!(model.lost(), Some(lost));
    later(&mut model, 3);
    assert_eq!(model.lost().unwrap().retry_in, None);
    model.take_tick(tick(0.0));
    assert_eq!(model.lost(), None);
}

#[test]
fn the_refresh_interval_has_four_steps_and_delays_ticks() {
    let mut model = model();
    let seconds = |model: &TopModel| model.refresh_interval().as_secs();
    assert_eq!(seconds(&model), 1);
    press(&mut model, "+++++");
    assert_eq!(seconds(&model), 10);
    press(&mut model, "-");
    assert_eq!(seconds(&model), 5);
    let shown = (0..10).filter(|number| {
        later(&mut model, 1);
        let before = model.tick.clone();
        model.take_tick(json!({"number": number}));
        model.tick != before
    });
    assert_eq!(shown.collect::<Vec<_>>(), [0, 5]);
}

#[test]
fn a_rule_without_keys_or_bans_shows_none() {
    let deny = RuleRow::new(
        0,
        &json!({"name": "deny", "algorithm": null, "keys": 0, "bans": 0, "action": "close"}),
    );
    assert_eq!(
        (deny.keys, deny.bans, deny.limit()),
        (None, None, "every match".into())
    );
    let banning = json!({"name": "x", "algorithm": "gcra", "limit": 5, "period": "1m", "escalate": ["10m", "1h"],
        "keys": 3, "bans": 2, "action": "block", "dry_run": true});
    let banning = RuleRow::new(0, &banning);
    assert_eq!((banning.keys, banning.bans), (Some(3), Some(2)));
    assert_eq!(
        (banning.limit(), banning.action(), banning.ban_duration()),
        ("5 / 1m".into(), "(block)".into(), "10m")
    );
}
