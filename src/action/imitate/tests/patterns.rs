//! Values that vary, and fresh ones like them.

use regex::Regex;

use super::super::Dice;
use super::*;

/// Makes values as an origin would, and checks those that are made after them.
fn holds(name: &str, origin: impl Fn(&mut Dice, u64) -> String, form: &str) {
    let memory = LearnedResponses::default();
    let mut dice = Dice::default();
    let mut real = Vec::new();
    for answer in 0..120 {
        let made = origin(&mut dice, answer);
        teach(&memory, answer as u32 % 30, &[(name, &made)]);
        real.push(made);
    }
    let form = Regex::new(&format!("^(?:{form})$")).unwrap();
    for _ in 0..200 {
        let made = value(&memory, name).unwrap_or_else(|| panic!("{name}: nothing is made"));
        assert!(
            form.is_match(&made),
            "{name}: {made} is not like {}",
            real[0]
        );
    }
}

fn hex(dice: &mut Dice, digits: usize) -> String {
    let text = format!(
        "{:016x}{:016x}{:016x}",
        dice.next(),
        dice.next(),
        dice.next()
    );
    text[..digits].to_owned()
}

fn from(dice: &mut Dice, letters: &[u8], count: usize) -> String {
    let letter = |_| char::from(letters[dice.below(letters.len())]);
    (0..count).map(letter).collect()
}

#[test]
fn varying_values_are_generated_in_their_pattern() {
    holds("x-request-id", |dice, _| hex(dice, 32), "[0-9a-f]{32}");
    let upper = |dice: &mut Dice, _| hex(dice, 16).to_uppercase();
    holds("x-trace", upper, "[0-9A-F]{16}");
    let uuid = |dice: &mut Dice, _| {
        let (a, b) = (hex(dice, 12), hex(dice, 15));
        let variant = from(dice, b"89ab", 1);
        format!(
            "{}-{}-4{}-{variant}{}-{}",
            &a[..8],
            &a[8..],
            &b[..3],
            &b[3..6],
            hex(dice, 12)
        )
    };
    let form = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}";
    holds("x-request-id", uuid, form);
    let etag = |dice: &mut Dice, _| format!("W/\"{}-{}\"", hex(dice, 2), hex(dice, 8));
    holds("etag", etag, "W/\"[0-9a-f]{2}-[0-9a-f]{8}\"");
    holds(
        "etag",
        |dice, _| format!("\"{}\"", hex(dice, 32)),
        "\"[0-9a-f]{32}\"",
    );
    let base64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let coded = |dice: &mut Dice, _| format!("\"{}=\"", from(dice, base64, 27));
    holds("etag", coded, "\"[A-Za-z0-9+/]{27}=\"");
    let traced = |dice: &mut Dice, _| format!("00-{}-{}-01", hex(dice, 32), hex(dice, 16));
    holds("traceparent", traced, "00-[0-9a-f]{32}-[0-9a-f]{16}-01");
    let ray = |dice: &mut Dice, _| format!("{}-FRA", hex(dice, 16));
    holds("x-ray", ray, "[0-9a-f]{16}-FRA");
    let prefixed = |dice: &mut Dice, _| format!("req_{}", hex(dice, 24));
    holds("x-request-id", prefixed, "req_[0-9a-f]{24}");
}

#[test]
fn numbers_stay_in_their_range() {
    holds(
        "age",
        |dice, _| (100 + dice.below(50)).to_string(),
        "1[0-4][0-9]",
    );
    let runtime = |dice: &mut Dice, _| format!("0.{:06}", 10_000 + dice.below(9_999));
    holds("x-runtime", runtime, r"0\.01\d{4}");
    let timing = |dice: &mut Dice, _| {
        format!(
            "db;dur={}.{}, app;dur={}",
            dice.below(9),
            1 + dice.below(8),
            dice.below(99)
        )
    };
    holds("server-timing", timing, r"db;dur=\d\.\d, app;dur=\d{1,2}");
    let places = |dice: &mut Dice, n| match n % 3 {
        0 => format!("{}", dice.below(9)),
        _ => format!("{}.{}", dice.below(9), 1 + dice.below(98)),
    };
    holds("x-took", places, r"\d(\.\d{1,2})?");
}

#[test]
fn a_duration_header_matches_the_time_of_the_imitated_response() {
    let memory = LearnedResponses::default();
    let mut dice = Dice::default();
    let request = Request::get();
    for answer in 0..300 {
        let took = 2_000 + dice.below(30_000);
        let runtime = format!("0.{:06}", took - 500 + dice.below(100));
        let fields = [
            ("x-runtime", runtime.as_str()),
            ("x-took", &(took / 1000).to_string()),
            ("x-response-time", &format!("{:.3}ms", took as f64 / 1e3)),
            ("x-render", &format!("{}ms", took / 1000)),
            ("x-total", &format!("app;{:.4}s, all", took as f64 / 1e6)),
        ];
        let head = Duration::from_micros(took as u64);
        memory.learn(&head_sent(answer % 12, &request, NOW, head, &fields));
        memory.learn_pace(ResponsePacing::after(head));
    }
    for _ in 0..100 {
        let head = memory.pace().unwrap().head();
        let when = SendSchedule { now: NOW, head };
        let imitation = memory.imitate(&request.asked(NOW), when).unwrap();
        let between = |at: usize, before: &str, after: &str| -> f64 {
            let value = imitation.fields[at].1.as_ref().unwrap();
            let value = value.to_str().unwrap().strip_suffix(after).unwrap();
            value.strip_prefix(before).unwrap().parse().unwrap()
        };
        let number = |at| between(at, "", "");
        let takes = head.as_secs_f64();
        let millis = takes * 1000.0;
        assert!(
            (millis - between(2, "", "ms")).abs() < 0.01,
            "{imitation:?}"
        );
        assert!((millis - between(3, "", "ms")).abs() < 2.0, "{imitation:?}");
        assert!(
            (takes - between(4, "app;", "s, all")).abs() < 0.001,
            "{imitation:?}"
        );
        assert!((takes - 0.0005 - number(0)).abs() < 0.0003, "{imitation:?}");
        assert!((takes * 1000.0 - number(1)).abs() < 2.0, "{imitation:?}");
    }
}

#[test]
fn timestamps_and_dates_are_current() {
    let memory = LearnedResponses::default();
    let request = Request::get();
    for answer in 0..120 {
        let now = Timestamp::from_millis(NOW.as_millis() + answer * 700);
        let earlier = Timestamp::from_secs(now.as_secs() - 3600 - answer);
        let (date, modified) = (HttpDate(now).to_string(), HttpDate(earlier).to_string());
        let (secs, millis) = (now.as_secs().to_string(), now.as_millis().to_string());
        let fields = [
            ("date", date.as_str()),
            ("last-modified", &modified),
            ("x-time", &secs),
            ("x-millis", &millis),
        ];
        teach_at(&memory, answer as u32 % 12, &request, now, &fields);
    }
    let later = Timestamp::from_secs(NOW.as_secs() + 1_000_000);
    let imitation = imitated_at(&memory, &request, later).unwrap();
    let values: Vec<&str> = imitation
        .fields
        .iter()
        .map(|(_, value)| value.as_ref().unwrap().to_str().unwrap())
        .collect();
    assert_eq!(values[0], HttpDate(later).to_string());
    let HttpDate(modified) = HttpDate::parse(values[1].as_bytes()).unwrap();
    assert!((3600..3720).contains(&(later.as_secs() - modified.as_secs())));
    assert_eq!(values[2], later.as_secs().to_string());
    assert_eq!(values[3].len(), 13);
    assert!(
        values[3].starts_with(&later.as_secs().to_string()),
        "{}",
        values[3]
    );
}

#[test]
fn a_date_learned_within_one_second_is_current_later() {
    let memory = LearnedResponses::default();
    let fields = |now: Timestamp| {
        let date = HttpDate(now).to_string();
        let expires = HttpDate(Timestamp::from_secs(now.as_secs() + 600)).to_string();
        (date, expires, HttpDate(Timestamp::from_secs(0)).to_string())
    };
    let request = Request::get();
    for answer in 0..120 {
        // Most come at once; what is constant is still so a minute later.
        let now = Timestamp::from_secs(NOW.as_secs() + answer / 100 * 60);
        let (date, expires, epoch) = fields(now);
        let fields = [
            ("date", date.as_str()),
            ("expires", &expires),
            ("x-old", &epoch),
        ];
        teach_at(&memory, answer as u32 % 12, &request, now, &fields);
    }
    let later = Timestamp::from_secs(NOW.as_secs() + 7200);
    let imitation = imitated_at(&memory, &request, later).unwrap();
    let values: Vec<&str> = imitation
        .fields
        .iter()
        .map(|(_, value)| value.as_ref().unwrap().to_str().unwrap())
        .collect();
    let (date, expires, epoch) = fields(later);
    assert_eq!(values, [date, expires, epoch]);
}

#[test]
fn values_without_a_pattern_are_not_generated() {
    let memory = LearnedResponses::default();
    for answer in 0..200 {
        let note = ["a b", "c, d; e", "(f)", "g=h i j"][answer % 4].repeat(answer + 1);
        teach(&memory, answer as u32, &[("x-note", &note)]);
    }
    assert_eq!(value(&memory, "x-note"), None);
}

proptest::proptest! {
    /// Whatever comes, what is made of it is a value, and nothing panics.
    #[test]
    fn any_values_can_be_learned_and_imitated(values in proptest::collection::vec("[ -~]{0,60}", 60..90)) {
        let memory = LearnedResponses::default();
        for (answer, value) in values.iter().enumerate() {
            teach(&memory, answer as u32, &[("x-any", value.trim()), ("etag", value.trim())]);
        }
        for _ in 0..10 {
            let _ = imitated(&memory).unwrap();
        }
    }

    /// Like the test before, for similar values.
    #[test]
    fn any_similar_values_can_be_learned_and_imitated(parts in proptest::collection::vec(("[0-9a-z]{1,9}", "[0-9.]{1,12}"), 60..90)) {
        let memory = LearnedResponses::default();
        for (answer, (a, b)) in parts.iter().enumerate() {
            teach(&memory, answer as u32, &[("x-any", &format!("{a}; v={b}"))]);
        }
        for _ in 0..10 {
            let _ = imitated(&memory).unwrap();
        }
    }
}

use crate::clock::HttpDate;
