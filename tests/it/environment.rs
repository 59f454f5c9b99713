//! Environment variables in the configuration.

use std::process::{Command, Output};

use crate::harness::Folder;

const CONFIG: &str = r#"
include = ["${LOCKGATE_TEST_FOLDER}/*.toml"]
[[listeners]]
address = "127.0.0.1:0"
[[routes]]
respond = { body = "${LOCKGATE_TEST_SECRET}" }
"#;

const RULES: &str = r#"
[[rules]]
name = "token"
mitigate = 'http.request.headers["x-token"][0] eq "${LOCKGATE_TEST_SECRET}" and http.host ne "$${HOST}"'
"#;

const SECRET: &str = "s3cret-value";

fn lockgate(folder: &Folder, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockgate"));
    command.args(arguments).arg("--config");
    command.arg(folder.path().join("gateway.toml"));
    command.env_remove("LOCKGATE_TEST_SECRET");
    command.envs(variables.iter().copied()).output().unwrap()
}

fn text(output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout);
    stdout.into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn folder(config: &str) -> Folder {
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("rules.d")).unwrap();
    folder.write("gateway.toml", config);
    folder.write("rules.d/one.toml", RULES);
    folder
}

#[test]
fn variables_are_read_and_their_values_are_not_shown() {
    let folder = folder(CONFIG);
    let variables = [
        ("LOCKGATE_TEST_SECRET", SECRET),
        ("LOCKGATE_TEST_FOLDER", "rules.d"),
    ];
    let checked = lockgate(&folder, &["check"], &variables);
    assert!(checked.status.success(), "{}", text(&checked));
    let rules = lockgate(&folder, &["rules", "--expanded"], &variables);
    let printed = text(&rules);
    assert!(!printed.contains(SECRET), "{printed}");
    assert!(printed.contains("${LOCKGATE_TEST_SECRET}"), "{printed}");
    assert!(printed.contains("$${HOST}"), "{printed}");
}

#[test]
fn a_variable_that_is_not_set_is_an_error_in_its_file() {
    let folder = folder(CONFIG);
    let checked = lockgate(&folder, &["check"], &[("LOCKGATE_TEST_FOLDER", "rules.d")]);
    let printed = text(&checked);
    assert!(!checked.status.success(), "{printed}");
    let message = "error: the environment variable `LOCKGATE_TEST_SECRET` is not set";
    assert!(
        printed.contains(&format!("gateway.toml:6:21: {message}")),
        "{printed}"
    );
    assert!(
        printed.contains(&format!("one.toml:4:52: {message}")),
        "{printed}"
    );
}

#[test]
fn an_error_shows_the_reference_instead_of_the_value() {
    let config = "[[listeners]]\naddress = \"${LOCKGATE_TEST_SECRET}\"\n[[routes]]\nrespond = {}\n";
    let folder = folder(config);
    let checked = lockgate(&folder, &["check"], &[("LOCKGATE_TEST_SECRET", SECRET)]);
    let printed = text(&checked);
    assert!(printed.contains("gateway.toml:2:11: error:"), "{printed}");
    assert!(printed.contains("`${LOCKGATE_TEST_SECRET}`"), "{printed}");
    assert!(!printed.contains(SECRET), "{printed}");
}
