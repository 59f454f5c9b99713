//! Warnings about the cookies of known clients.

use std::path::PathBuf;
use std::sync::LazyLock;

use super::{TLS, none, only};

const LOGIN: &str = "http.request.method eq \"POST\" and http.request.uri.path eq \"/login\"";
const LIMIT: &str = "[[rules]]\nname = \"device\"\nmitigate = 'http.request.uri.path eq \"/login\"'\n\
                     key = [\"client.id\"]\nmissing = \"skip\"\nlimit = 10\nperiod = \"15m\"\n";

fn known(server: &str, success: &str, rules: &str) -> String {
    format!("{TLS}[server]\n{server}\n[known_clients]\nsuccess = '{success}'\n{rules}")
}

fn with_secret(success: &str, rules: &str) -> String {
    known(&secret(), success, rules)
}

/// The setting that names a secret.
pub(super) fn secret() -> String {
    // One thread writes the file, so that no other test reads a part of it.
    static SECRET: LazyLock<PathBuf> = LazyLock::new(secret_file);
    format!("secret_file = {:?}", *SECRET)
}

fn secret_file() -> PathBuf {
    let file = std::env::temp_dir().join(format!("lockgate-lint-secret-{}", std::process::id()));
    std::fs::write(&file, [7; 32]).unwrap();
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&file, permissions).unwrap();
    file
}

#[test]
fn a_success_that_includes_get() {
    let warning = "`success` can match GET: whoever loads the page becomes known, and caches may store the response";
    let any = |success: &str| with_secret(success, LIMIT);
    only(&any("http.response.code eq 200"), warning);
    only(
        &any("http.request.uri.path eq \"/login\" and http.response.code eq 200"),
        warning,
    );
    only(&any("http.request.method in {\"POST\" \"GET\"}"), warning);
    only(
        &any(&format!("({LOGIN}) or http.request.uri.path eq \"/otp\"")),
        warning,
    );
    none(&any(&format!("{LOGIN} and http.response.code eq 200")));
    none(&any("http.request.method in {\"POST\" \"PUT\"}"));
    none(&any("not http.request.method in {\"GET\" \"HEAD\"}"));
    none(&any(&format!(
        "({LOGIN}) or http.request.method eq \"PUT\""
    )));
}

#[test]
fn cookies_without_a_limit() {
    let warning =
        "no rule limits what one cookie can do: a stolen cookie is as good as a known client";
    only(&with_secret(LOGIN, ""), warning);
    only(
        &with_secret(LOGIN, &LIMIT.replace("client.id", "ip.src")),
        warning,
    );
    none(&with_secret(LOGIN, LIMIT));
}

#[test]
fn cookies_without_a_secret_file() {
    let warning = "without `server.secret_file`, cookies end with this process, and other gateways refuse them";
    only(&known("", LOGIN, LIMIT), warning);
    none(&with_secret(LOGIN, LIMIT));
}

#[test]
fn a_shared_key_that_includes_known_clients() {
    let message = "this rule refuses known clients for what other clients with the same key do";
    let success = format!("{LOGIN} and http.response.code eq 302");
    let rule = |lines: &str| {
        let rule = "name = \"tool\"\nkey = [\"tls.ja4\"]\nlimit = 10\nperiod = \"1m\"\n";
        with_secret(&success, &format!("{LIMIT}[[rules]]\n{rule}{lines}\n"))
    };
    let all = "mitigate = 'http.request.uri.path eq \"/a\"'\n";
    only(&rule(&format!("{all}duration = \"10m\"")), message);
    only(&rule(&format!("{all}action = \"shadow\"")), message);
    none(&rule(all));
    let new = "mitigate = 'http.request.uri.path eq \"/a\" and not client.known'\n";
    none(&rule(&format!("{new}action = \"shadow\"")));
}
