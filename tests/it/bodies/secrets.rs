//! Form values and bodies appear nowhere in clear text.

use std::fs;

use super::{FORM, behind, login};
use crate::harness::{Folder, Process, Running, wait_until};

/// A rule that reads a body in every way.
const READER: &str = r#"
[[rules]]
name = "reader"
count = 'http.request.body.form["user"] ne "" and http.request.body.raw contains "user" and any(http.request.body.form.values[*] ne "")'
key = ['http.request.body.form["user"]', 'lower(http.request.body.form["user"])', 'http.request.body.raw']
limit = 1
period = "1h"
duration = "1h"
"#;

#[test]
fn the_access_log_shows_hashes() {
    let folder = Folder::new();
    let log = folder.path().join("access.log");
    let config = behind("servers = [\"{origin}\"]", READER);
    let config = config.replace("access = \"off\"", &format!("access = {log:?}"));
    let gateway = Running::on(&config);
    login(gateway.client(), "user=S3cret&password=s3cret")
        .times(2)
        .then(200, 429);
    let read = || fs::read_to_string(&log).unwrap_or_default();
    wait_until("two lines are written", || read().lines().count() == 2);
    let text = read();
    assert!(
        text.contains("http.request.body.form[\\\"user\\\"]"),
        "{text}"
    );
    assert!(!text.to_ascii_lowercase().contains("s3cret"), "{text}");
    // A body has the password too, so not even its hash is logged.
    for field in ["http.request.body.raw", "http.request.body.form.values"] {
        assert!(!text.contains(field), "{text}");
    }
}

#[test]
fn explain_simulates_a_form_and_shows_hashes() {
    let folder = Folder::new();
    let config = behind("servers = [\"127.0.0.1:9\"]", READER);
    folder.write("gateway.toml", config);
    let run = |arguments: &[&str]| {
        let common = ["explain", "POST", "/login", "--repeat", "2"];
        let output = Process::output(&folder, &[&common, arguments].concat());
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let form = ["--form", "user=S3cret", "--form", "q=a&b=1 2"];
    for format in ["human", "json"] {
        let text = run(&[&form[..], &["--format", format]].concat());
        assert!(text.contains("429"), "{text}");
        let clear = ["s3cret", "a&b", "1 2", "a%26b"];
        let lower = text.to_ascii_lowercase();
        assert!(!clear.iter().any(|value| lower.contains(value)), "{text}");
    }
    assert!(run(&form).contains("429 by rule"));
    // The same fields in a body that has no form.
    for header in ["content-type: text/plain", "content-encoding: gzip"] {
        assert!(
            !run(&[&form[..], &["-H", header]].concat()).contains("429 by rule"),
            "{header}"
        );
    }
    assert!(!run(&["-H", &format!("content-type: {FORM}")]).contains("429 by rule"));
}
