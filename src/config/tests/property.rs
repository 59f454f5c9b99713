//! No text makes the reader panic, and every span that it reports is in the text.

use proptest::prelude::*;

use crate::config::{ConfigSource, Diagnostics, read};

fn check(text: String) -> Result<(), TestCaseError> {
    let source = ConfigSource::new("t.toml", text);
    let mut diagnostics = Diagnostics::new();
    let file = read(&source, &mut diagnostics);
    prop_assert!(file.is_some() || diagnostics.has_errors());
    for d in diagnostics.sorted() {
        prop_assert!(source.text.get(d.span.clone()).is_some(), "{:?}", d);
    }
    for color in [false, true] {
        let rendered = diagnostics.render(&source, color);
        prop_assert!(diagnostics.is_empty() || rendered.starts_with("t.toml:"));
    }
    Ok(())
}

/// Generates lines with known settings and mostly wrong values.
fn lines() -> impl Strategy<Value = String> {
    let header = prop::sample::select(vec![
        "[server]",
        "[[listeners]]",
        "[listeners.tls]",
        "[limits]",
        "[client_ip]",
        "[geo]",
        "[geo.overrides]",
        "[admin]",
        "[log]",
        "[store]",
        "[lists]",
        "[[upstreams]]",
        "[[routes]]",
        "[[rules]]",
        "[responses.x]",
        "[rules]",
        "[[server]]",
    ]);
    let key = prop::sample::select(vec![
        "name",
        "address",
        "protocols",
        "certificates",
        "limit",
        "period",
        "count",
        "expression",
        "mitigate",
        "key",
        "servers",
        "hosts",
        "respond",
        "redirect",
        "upstream",
        "headers",
        "status",
        "drain_timeout",
        "max_body_bytes",
        "\"ü\"",
        "\"10.0.0.0/8\"",
        "kind",
        "slices",
        "algorithm",
        "action",
        "escalate",
        "cost",
        "candidate",
        "jitter",
        "imitate",
    ]);
    let value = prop_oneof![
        "\"[^\"\\\\\\p{Cc}]{0,9}\"",
        "'[a-z0-9:./ ]{0,12}'",
        "-?[1-9][0-9]{0,22}",
        "\\[('[a-z]{0,4}', )*[0-9]\\]",
        Just("{ status = 200, body = 'ö' }".to_owned()),
        Just("{ response_header = 'x' }".to_owned()),
        Just("{ algorithm = 'gcra', limit = 3 }".to_owned()),
        Just("'concurrency'".to_owned()),
        Just("'tarpit'".to_owned()),
        Just("[{ cert = 'a', key = 1 }]".to_owned()),
        Just("true".to_owned()),
        Just("1.5".to_owned()),
        Just("2020-01-01".to_owned()),
        Just("\"\"\"\nä\r\n\"\"\"".to_owned()),
    ];
    prop_oneof![
        1 => header.prop_map(str::to_owned),
        3 => (key, value).prop_map(|(key, value)| format!("{key} = {value}")),
    ]
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in any::<String>()) {
        check(text)?;
    }

    #[test]
    fn any_text_of_toml_characters_is_read_without_a_panic(text in "[\\[\\]{}=.,'\"#\\\\a-c0-9 ü\r\n\u{feff}]{0,60}") {
        check(text)?;
    }

    #[test]
    fn any_mixture_of_lines_is_read_without_a_panic(lines in prop::collection::vec(lines(), 0..14)) {
        check(lines.join("\n"))?;
    }

    #[test]
    fn a_column_counts_characters(before in "[a-zäö😀]{0,12}", line in "[a-zäö😀]{0,12}") {
        let text = format!("# {before}\n\"{line}\" = 1\n");
        let source = ConfigSource::new("t.toml", text);
        let offset = source.text.find("= 1").unwrap();
        let at = source.position(offset);
        prop_assert_eq!((at.line, at.column), (2, line.chars().count() + 4));
        // Every byte has a position, even one within a character.
        for offset in 0..source.text.len() + 3 {
            let before = source.slice(0..source.clamp(offset..offset).start);
            prop_assert_eq!(source.position(offset).line, before.matches('\n').count() + 1);
            source.slice(offset..offset + 2);
        }
    }
}
