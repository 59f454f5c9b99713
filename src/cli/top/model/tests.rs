//! What keys and events do, without a terminal.

use serde_json::json;

use super::*;

const START: Timestamp = Timestamp::from_secs(1_700_000_000);

fn rule(name: &str) -> Value {
    json!({"name": name, "algorithm": "gcra", "limit": 5, "period": "1m", "action": "block", "keys": 1, "bans": 0})
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
    json!({"rules": {"two": {"matched_per_s": 9.0, "mitigated_per_s": two}}})
}

#[test]
fn q_goes_back_and_then_quits() {
    let mut model = model();
    assert_eq!(model.press(TopKey::Enter), Some(TopCommand::Refresh));
    assert_eq!(model.screen, TopScreen::Rule("one".into()));
    assert_eq!(press(&mut model, "q"), Some(TopCommand::Refresh));
    assert_eq!(model.screen, TopScreen::Overview);
    assert_eq!(press(&mut model, "q"), Some(TopCommand::Quit));
    press(&mut model, "/q");
    assert_eq!(model.press(TopKey::CtrlC), Some(TopCommand::Quit));
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
    model.press(TopKey::PageDown);
    assert_eq!(model.selected_index(), 2);
}

#[test]
fn a_table_is_sorted_at_most_every_ten_seconds() {
    let mut model = model();
    press(&mut model, "s");
    later(&mut model, 1);
    model.take_tick(tick(7.0));
    assert_eq!(names(&model), ["one", "two", "three"]);
    later(&mut model, 9);
    press(&mut model, "r");
    model.take_tick(tick(7.0));
    assert_eq!(names(&model), ["one", "two", "three"], "a question is open");
    press(&mut model, "n");
    model.take_tick(tick(7.0));
    assert_eq!(names(&model), ["two", "one", "three"]);
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

fn banned(model: &mut TopModel) {
    press(model, "b");
    let row = |key: &str| ListedRow {
        rule: "two".into(),
        key: key.into(),
        object: Value::Null,
    };
    model.take_rows(vec![row("203.0.113.7"), row("203.0.113.42")]);
}

#[test]
fn an_unban_asks_first_and_can_be_undone() {
    let mut model = model();
    banned(&mut model);
    model.press(TopKey::Down);
    assert_eq!(press(&mut model, "u"), None);
    assert_eq!(press(&mut model, "xn"), None);
    assert_eq!(model.prompt, None);
    let unban = TopCommand::Unban {
        rule: "two".into(),
        key: "203.0.113.42".into(),
    };
    assert_eq!(press(&mut model, "uy"), Some(unban));
    let removed = json!({"rule": "two", "key": "203.0.113.42"});
    model.take_result(
        "203.0.113.42 is unbanned. z undoes.".into(),
        Some(removed.clone()),
    );
    later(&mut model, 9);
    assert!(model.notice().unwrap().contains("z undoes"));
    assert_eq!(press(&mut model, "z"), Some(TopCommand::Undo(removed)));
    assert_eq!(press(&mut model, "z"), None);
    later(&mut model, 1);
    assert_eq!(model.notice(), None);
}

#[test]
fn a_ban_by_hand_asks_for_a_duration() {
    let mut model = model();
    assert_eq!(press(&mut model, "Bu"), None);
    assert_eq!(model.prompt, None, "a rule is not a key");
    banned(&mut model);
    press(&mut model, "B");
    for _ in 0..3 {
        model.press(TopKey::Backspace);
    }
    press(&mut model, "1h");
    let ban = TopCommand::Ban {
        rule: "two".into(),
        key: "203.0.113.7".into(),
        duration: "1h".into(),
    };
    assert_eq!(model.press(TopKey::Enter), Some(ban));
}

#[test]
fn a_search_opens_a_rule_or_lists_bans() {
    let mut model = model();
    press(&mut model, "/two");
    model.press(TopKey::Enter);
    assert_eq!(model.screen, TopScreen::Rule("two".into()));
    press(&mut model, "/203.0.113.7");
    model.press(TopKey::Enter);
    assert_eq!(model.search(), Some("203.0.113.7"));
    press(&mut model, "/x");
    assert_eq!(model.press(TopKey::Esc), None);
    assert_eq!(model.prompt, None);
}

#[test]
fn a_paused_screen_stands_still_and_the_stream_stays_live() {
    let mut model = model();
    press(&mut model, "p");
    later(&mut model, 12);
    model.take_tick(tick(7.0));
    assert_eq!(model.paused_for(), Some(Duration::from_secs(12)));
    assert_eq!(model.lost_for(), None);
    assert_eq!(model.rules[1].mitigated_per_s, 0.0);
    press(&mut model, "p");
    model.take_tick(tick(7.0));
    assert_eq!(model.rules[1].mitigated_per_s, 7.0);
}

#[test]
fn a_stream_without_a_tick_for_four_seconds_is_lost() {
    let mut model = model();
    later(&mut model, 3);
    assert_eq!(model.lost_for(), None);
    later(&mut model, 1);
    assert_eq!(model.lost_for(), Some(Duration::from_secs(4)));
    model.take_tick(tick(0.0));
    assert_eq!(model.lost_for(), None);
}

#[test]
fn the_refresh_interval_has_four_steps() {
    let mut model = model();
    let seconds = |model: &TopModel| model.refresh_interval().as_secs();
    assert_eq!(seconds(&model), 1);
    press(&mut model, "+++++");
    assert_eq!(seconds(&model), 10);
    press(&mut model, "-");
    assert_eq!(seconds(&model), 5);
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
    let banning = json!({"name": "x", "algorithm": "gcra", "limit": 5, "period": "1m", "duration": "10m", "keys": 3, "bans": 2,
        "action": "block", "dry_run": true});
    let banning = RuleRow::new(0, &banning);
    assert_eq!((banning.keys, banning.bans), (Some(3), Some(2)));
    assert_eq!(
        (banning.limit(), banning.action()),
        ("5 / 1m".into(), "(block)".into())
    );
}
