//! The tables of `tests/data/hostile`, as data: see the head of each file for its format.

use toml::{Table, Value};

/// A whole request that nobody may find inside another one.
const HIDDEN: &str = "GET /smuggled HTTP/1.1\r\nhost: a.example\r\n\r\n";

/// A request, or what claims to be one.
pub struct Case {
    /// What it tries.
    pub name: String,
    /// What the client sends.
    pub bytes: Vec<u8>,
    /// What must come of it.
    pub expect: Expect,
}

/// What must come of a request, where no rule stops it.
#[derive(Clone)]
pub enum Expect {
    /// One of these statuses and the end of the connection; the origin sees nothing.
    Refused(&'static [u16]),
    /// The same, but its head has a meaning that rules can look at first. The origin sees no whole
    /// request.
    Late(u16),
    /// The origin sees this, once.
    Accepted(Box<Wanted>),
}

/// What the origin must see of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The request line.
    pub line: String,
    /// `host`.
    pub host: String,
    /// All fields in order, but those that the gateway writes.
    pub fields: Vec<String>,
    /// The body.
    pub body: Vec<u8>,
    /// All trailers in order.
    pub trailers: Vec<String>,
    /// Whether the connection ends there.
    pub closes: bool,
}

/// The HTTP/1 requests; the number of each is its place.
pub fn http1() -> Vec<Case> {
    let file = read(include_str!("../../data/hostile/http1.toml"));
    let mut cases = Vec::new();
    for group in tables(&file, "group") {
        for (put, expect) in expectations(group) {
            let send = text(group, "send").replace("{}", &put);
            let bytes = expand(&send.replace("{case}", &cases.len().to_string()));
            let put: String = put.chars().take(60).collect();
            let name = format!("{} {put:?}", text(group, "name"));
            let bytes = bytes.chars().map(byte).collect();
            cases.push(Case {
                name,
                bytes,
                expect,
            });
        }
    }
    cases
}

/// What differs between the cases of a group, with what must come of each.
fn expectations(group: &Table) -> Vec<(String, Expect)> {
    let lists = [
        ("400", Expect::Refused(&[400])),
        ("431", Expect::Refused(&[431])),
        ("501", Expect::Refused(&[501])),
        ("either", Expect::Refused(&[400, 413, 431, 501])),
        ("broken", Expect::Late(400)),
        ("413", Expect::Late(413)),
    ];
    let mut found = Vec::new();
    for (key, expect) in lists {
        for key in [key.to_owned(), format!("{key}-may")] {
            let puts = strings(group, &key).into_iter();
            found.extend(puts.map(|put| (put, expect.clone())));
        }
    }
    for accept in tables(group, "accept") {
        let mut whole = group.clone();
        whole.extend(accept.clone());
        let wanted = Expect::Accepted(Box::new(wanted(&whole, "a.example")));
        found.push((text(accept, "put"), wanted));
    }
    found
}

/// What the origin must see, as a table says it.
pub fn wanted(table: &Table, host: &str) -> Wanted {
    let lines = |key| {
        strings(table, key)
            .iter()
            .map(|line| expand(line))
            .collect()
    };
    Wanted {
        line: text(table, "line"),
        host: table.get("host").map_or(host.into(), string),
        fields: lines("fields"),
        body: table.get("body").map_or(Vec::new(), |body| {
            expand(&string(body)).chars().map(byte).collect()
        }),
        trailers: lines("trailers"),
        closes: table.get("closes").is_some(),
    }
}

/// A file of `tests/data/hostile`.
pub fn read(text: &str) -> Table {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// An array of tables; empty if it is absent.
pub fn tables<'a>(table: &'a Table, key: &str) -> Vec<&'a Table> {
    let values = table.get(key).map(|value| value.as_array().unwrap());
    let values = values.into_iter().flatten();
    values.map(|value| value.as_table().unwrap()).collect()
}

/// An array of strings; empty if it is absent.
pub fn strings(table: &Table, key: &str) -> Vec<String> {
    let values = table.get(key).map(|value| value.as_array().unwrap());
    values.into_iter().flatten().map(string).collect()
}

/// A string that must be there.
#[track_caller]
pub fn text(table: &Table, key: &str) -> String {
    let value = table.get(key);
    value.map_or_else(|| panic!("no {key} in {table}"), string)
}

#[track_caller]
fn string(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// A character of a table stands for one byte.
pub fn byte(character: char) -> u8 {
    u8::try_from(character).unwrap()
}

/// Fills in what stands in braces.
pub fn expand(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let filled = after
            .split_once('}')
            .and_then(|(inside, after)| fill(inside).map(|filled| (filled, after)));
        match filled {
            Some((filled, after)) => {
                out.push_str(&filled);
                rest = after;
            }
            None => {
                out.push('{');
                rest = after;
            }
        }
    }
    out + rest
}

fn fill(inside: &str) -> Option<String> {
    if inside == "hidden" {
        return Some(HIDDEN.into());
    }
    let (what, count) = inside.split_once('*')?;
    let count = count.parse().ok()?;
    Some(match what {
        "fields" => {
            let lines: Vec<_> = (0..count).map(|n| format!("x-{n}: 1")).collect();
            lines.join("\r\n")
        }
        "interim" => "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(count),
        letter => letter.repeat(count),
    })
}
