//! What a suspicious client could look at in an answer: its timing first, then everything else.

use std::collections::BTreeSet;

use lockgate::clock::HttpDate;

use super::answer::Answer;

/// How many of the features are of timing.
pub const TIMING: usize = 3;

/// The names of all features, and their values for each answer.
pub fn of(answers: &[(Answer, bool)]) -> (Vec<String>, Vec<Vec<f64>>) {
    let fields: BTreeSet<&str> = answers
        .iter()
        .flat_map(|(answer, _)| answer.headers.iter().map(|(name, _)| name.as_str()))
        .collect();
    let mut names: Vec<String> = [
        "first byte",
        "last byte",
        "between them",
        "reads",
        "body bytes",
        "body entropy",
        "body repeats",
        "pieces",
        "first piece",
        "fields",
        "order",
        "runtime left",
    ]
    .map(str::to_owned)
    .into();
    for field in &fields {
        for what in ["length", "entropy", "repeats", "number", "place"] {
            names.push(format!("{field}: {what}"));
        }
    }
    let mut before: [Option<&Answer>; 2] = [None, None];
    let mut rows = Vec::new();
    for (answer, shadow) in answers {
        let at = usize::from(*shadow);
        rows.push(row(answer, before[at], &fields));
        before[at] = Some(answer);
    }
    (names, rows)
}

/// Writes all of it to a file in `folder`, for whoever wants to look closer.
pub fn dump(
    folder: &str,
    case: &str,
    names: &[String],
    rows: &[Vec<f64>],
    answers: &[(Answer, bool)],
) {
    let name: String = case.chars().filter(char::is_ascii_alphanumeric).collect();
    let mut text = format!("shadow\tat\t{}\n", names.join("\t"));
    for (row, (answer, shadow)) in rows.iter().zip(answers) {
        let values: Vec<String> = row.iter().map(f64::to_string).collect();
        let (shadow, values) = (u8::from(*shadow), values.join("\t"));
        text += &format!("{shadow}\t{}\t{values}\n", answer.at);
    }
    std::fs::write(format!("{folder}/{name}.tsv"), text).unwrap();
}

/// Prints how far each feature separates by itself.
pub fn detail(names: &[String], rows: &[Vec<f64>], labels: &[bool]) {
    let mut found: Vec<(f64, &str, [f64; 3], [f64; 3])> = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let tenths = |shadow| {
            let of = rows
                .iter()
                .zip(labels)
                .filter(|(_, label)| **label == shadow);
            let mut values: Vec<f64> = of.map(|(row, _)| row[at]).collect();
            values.sort_by(f64::total_cmp);
            [1, 5, 9].map(|tenth| values[values.len() * tenth / 10])
        };
        let scores: Vec<(f64, bool)> = rows.iter().zip(labels).map(|(r, l)| (r[at], *l)).collect();
        let area = super::trees::area_of(scores);
        found.push(((area - 0.5).abs(), name, tenths(false), tenths(true)));
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (area, name, real, shadow) in found.iter().take(12) {
        println!(
            "<!-- {name}: {:.3}; {real:.6?} and {shadow:.6?} -->",
            area + 0.5
        );
    }
}

fn row(answer: &Answer, before: Option<&Answer>, fields: &BTreeSet<&str>) -> Vec<f64> {
    let micros = |duration: std::time::Duration| duration.as_secs_f64() * 1e6;
    let runtime = value(answer, "x-runtime").and_then(|value| value.parse::<f64>().ok());
    let mut row = vec![
        micros(answer.first),
        micros(answer.last),
        micros(answer.last - answer.first),
        answer.reads as f64,
        answer.body.len() as f64,
        entropy(&answer.body),
        f64::from(before.is_some_and(|before| before.body == answer.body)),
        answer.pieces.len() as f64,
        answer.pieces.first().copied().unwrap_or(0) as f64,
        answer.headers.len() as f64,
        order(answer),
        micros(answer.first) - runtime.unwrap_or(-1.0) * 1e6,
    ];
    for field in fields {
        let own = value(answer, field);
        let known = own.unwrap_or("");
        let previous = before.and_then(|before| value(before, field));
        let place = answer.headers.iter().position(|(name, _)| name == field);
        row.extend([
            own.map_or(-1.0, |value| value.len() as f64),
            entropy(known.as_bytes()),
            f64::from(own.is_some() && own == previous),
            number(known, answer.at),
            place.map_or(-1.0, |place| place as f64),
        ]);
    }
    row
}

fn value<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    let mut fields = answer.headers.iter();
    fields
        .find(|(own, _)| own == name)
        .map(|(_, value)| value.as_str())
}

/// A date as how old it is, a number as it is, a hexadecimal beginning as a number.
fn number(value: &str, at: f64) -> f64 {
    if let Some(HttpDate(date)) = HttpDate::parse(value.as_bytes()) {
        return at - date.as_secs() as f64;
    }
    let digits: String = value
        .chars()
        .filter(char::is_ascii_hexdigit)
        .take(8)
        .collect();
    let hex = || u64::from_str_radix(&digits, 16).map_or(-1.0, |number| number as f64);
    value.parse().unwrap_or_else(|_| hex())
}

/// The names in order, as a number.
fn order(answer: &Answer) -> f64 {
    let names = answer
        .headers
        .iter()
        .flat_map(|(name, _)| name.bytes().chain([b'\n']));
    let hash = names.fold(7u32, |hash, byte| {
        hash.wrapping_mul(31).wrapping_add(u32::from(byte))
    });
    f64::from(hash)
}

fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0usize; 256];
    for byte in bytes {
        counts[usize::from(*byte)] += 1;
    }
    let shares = counts.iter().filter(|count| **count > 0);
    let shares = shares.map(|count| *count as f64 / bytes.len() as f64);
    -shares.map(|share| share * share.log2()).sum::<f64>()
}
