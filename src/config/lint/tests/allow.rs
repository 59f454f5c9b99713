//! Comments that silence warnings.

use super::{PATH, PLAIN, TLS, none, only, rule};
use crate::config::{self, ConfigSource, Diagnostics};

/// A ban on a shared key, with these lines above the key.
fn shared(above: &str) -> String {
    rule(&format!(
        "{PATH}duration = \"1m\"\n{above}key = [\"tls.ja4\"]"
    ))
}

#[test]
fn a_comment_above_the_line_silences_its_warning() {
    let message = "a ban on this key applies to all clients that share it";
    none(&shared("# lockgate: allow shared-key\n"));
    none(&shared("# lockgate: allow raw-path, shared-key\n"));
    none(&shared(
        "# lockgate: allow shared-key\n# They share it on purpose.\n",
    ));
    only(&shared("# lockgate: allow chosen-key\n"), message);
    only(&shared("# lockgate: allow shared-key\n\n"), message);
    only(&(shared("") + "# lockgate: allow shared-key\n"), message);
}

#[test]
fn a_comment_covers_all_lines_of_its_setting() {
    let lines = |above: &str| {
        format!(
            "{TLS}[[rules]]\nname = \"r\"\n{above}mitigate = '''\nssl and\n\
             http.x_forwarded_for eq \"a\"'''\n"
        )
    };
    only(
        &lines(""),
        "clients can send any value in `X-Forwarded-For`",
    );
    none(&lines("# lockgate: allow unverified-value\n"));
    let key = shared("# lockgate: allow shared-key\n");
    none(&key.replace("[\"tls.ja4\"]", "[\n  \"tls.ja4\",\n]"));
}

#[test]
fn a_line_of_a_string_is_not_a_comment() {
    let body = "[responses.a]\nbody = '''\n# lockgate: allow unused\n'''\n";
    only(
        &format!("{TLS}{body}"),
        "no rule or route uses the response `a`",
    );
    let above = "# lockgate: allow unused\n";
    none(&format!("{TLS}{above}{body}"));
}

#[test]
fn an_unknown_code_in_a_comment_is_an_error() {
    for (comment, message) in [
        (
            "# lockgate: allow shard-key",
            "unknown warning `shard-key`; did you mean `shared-key`?",
        ),
        (
            "# lockgate: silence shared-key",
            "expected `allow` and the code of a warning after `lockgate:`",
        ),
    ] {
        let source = ConfigSource::new("gateway.toml", format!("{PLAIN}{comment}\n"));
        let mut diagnostics = Diagnostics::new();
        config::read(&source, &mut diagnostics);
        assert!(diagnostics.has_errors());
        assert_eq!(diagnostics.sorted()[0].message, message);
    }
}
