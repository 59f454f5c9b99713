//! The parts of PromQL that name metrics and labels. Functions and operators are for `promtool`.

/// A metric with the labels that an expression compares.
#[derive(Debug, PartialEq, Eq)]
pub struct Selector {
    /// The name of the metric.
    pub metric: String,
    /// Each label with the values that it is compared with.
    pub labels: Vec<(String, Vec<String>)>,
}

/// An expression, as far as it names metrics and labels.
#[derive(Debug, Default)]
pub struct Expression {
    /// The metrics that it reads.
    pub selectors: Vec<Selector>,
    /// The labels that it groups or joins by.
    pub grouping: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Text(String),
    Sign(char),
}

const GROUPING: [&str; 6] = [
    "by",
    "without",
    "on",
    "ignoring",
    "group_left",
    "group_right",
];

// === impl Expression ===

impl Expression {
    /// Reads an expression. A word is a metric if it has braces or the prefix of this gateway.
    pub fn parse(text: &str) -> Self {
        let tokens = tokens(text);
        let mut found = Self::default();
        let mut at = 0;
        while at < tokens.len() {
            let next = tokens.get(at + 1);
            match &tokens[at] {
                Token::Word(word) if GROUPING.contains(&word.as_str()) => {
                    let inside = enclosed(&tokens[at + 1..], ')');
                    found.grouping.extend(words(inside));
                    at += inside.len();
                }
                Token::Word(word) if next == Some(&Token::Sign('{')) => {
                    let inside = enclosed(&tokens[at + 1..], '}');
                    found.selectors.push(Selector::new(word, inside));
                    at += inside.len();
                }
                Token::Word(word) if word.starts_with("lockgate_") => {
                    found.selectors.push(Selector::new(word, &[]));
                }
                _ => {}
            }
            at += 1;
        }
        found
    }
}

// === impl Selector ===

impl Selector {
    fn new(metric: &str, inside: &[Token]) -> Self {
        let mut labels: Vec<(String, Vec<String>)> = Vec::new();
        for token in inside {
            match (token, labels.last_mut()) {
                (Token::Word(label), _) => labels.push((label.clone(), Vec::new())),
                (Token::Text(values), Some((_, known))) => {
                    known.extend(values.split('|').map(str::to_owned));
                }
                _ => {}
            }
        }
        let metric = metric.to_owned();
        Self { metric, labels }
    }
}

/// The tokens from an opening sign to the closing one.
fn enclosed(tokens: &[Token], close: char) -> &[Token] {
    let end = tokens
        .iter()
        .position(|token| *token == Token::Sign(close))
        .unwrap_or_else(|| panic!("{close} is missing in {tokens:?}"));
    &tokens[..end]
}

fn words(tokens: &[Token]) -> impl Iterator<Item = String> {
    tokens.iter().filter_map(|token| match token {
        Token::Word(word) => Some(word.clone()),
        _ => None,
    })
}

fn tokens(text: &str) -> Vec<Token> {
    let mut rest = text.trim_start();
    let mut found = Vec::new();
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
        let (token, length) = if length > 0 {
            (Token::Word(rest[..length].to_owned()), length)
        } else if first == '"' {
            let text = rest[1..].split('"').next().unwrap();
            (Token::Text(text.to_owned()), text.len() + 2)
        } else {
            (Token::Sign(first), first.len_utf8())
        };
        found.push(token);
        rest = rest[length..].trim_start();
    }
    found
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '$')
}

#[test]
fn metrics_and_labels_are_found() {
    let found = Expression::parse(
        "sum without (rule, le) (rate(lockgate_a{x=\"1\",y=~\"2|3\"}[5m])) / on (job) lockgate_b > 0",
    );
    let values = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let labels = vec![
        ("x".to_owned(), values(&["1"])),
        ("y".to_owned(), values(&["2", "3"])),
    ];
    let metric = |name: &str, labels| Selector {
        metric: name.to_owned(),
        labels,
    };
    assert_eq!(
        found.selectors,
        [metric("lockgate_a", labels), metric("lockgate_b", vec![])]
    );
    assert_eq!(found.grouping, ["rule", "le", "job"]);
    let other = Expression::parse("up{job=\"lockgate\"} == 0");
    assert_eq!(other.selectors[0].metric, "up");
}
