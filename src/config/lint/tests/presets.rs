//! Warnings about presets.

use super::known_clients::secret;
use super::{TLS, none, only, warnings};

const LOGIN: &str = "[[protect]]\nkind = \"login\"\npath = \"/login\"\n";
const USER: &str = "user_field = \"user\"\n";
const SIGNUP: &str = "[[protect]]\nkind = \"signup\"\npath = \"/signup\"\nactions = \"/invite\"\n";

fn with(lines: &str) -> String {
    format!("{TLS}[server]\n{}\n{lines}", secret())
}

#[test]
fn a_login_without_a_user() {
    let message = "without the user of a login, guesses at one account are not counted together";
    only(&with(LOGIN), message);
    none(&with(&format!("{LOGIN}{USER}")));
    none(&with("[[protect]]\nkind = \"pages\"\npath = \"/a/*\"\n"));
}

#[test]
fn a_registration_next_to_a_login_without_a_user() {
    let message = "every registration is a known client of the preset `login`";
    let found = warnings(&with(&format!("{LOGIN}{SIGNUP}")));
    assert_eq!(found.get(1).map(String::as_str), Some(message));
    none(&with(&format!("{LOGIN}{USER}{SIGNUP}")));
}

#[test]
fn a_registration_that_proves_no_user() {
    let message = "a registration with another user's name makes a client known to that user of the preset `login`, \
                   if its response looks like a success";
    let named = format!("{LOGIN}{USER}{SIGNUP}{USER}");
    only(&with(&named), message);
    let proven = "success = 'http.response.code eq 201'\n";
    none(&with(&format!("{named}{proven}")));
    none(&with(&format!("{SIGNUP}{USER}")));
}

#[test]
fn pages_that_are_the_whole_site() {
    let message = "images, scripts and styles count as pages too, so every new client is challenged after four requests";
    let pages = |lines: &str| with(&format!("[[protect]]\nkind = \"pages\"\n{lines}\n"));
    only(&pages("path = [\"/a\", \"/*\"]"), message);
    none(&pages("path = \"/*\"\nstrict = true"));
    none(&pages("path = \"/p*\""));
}

#[test]
fn two_presets_for_one_path() {
    let message = "the preset `login` counts the same requests";
    let second = |lines: &str| {
        format!("{LOGIN}{USER}[[protect]]\nkind = \"login\"\nname = \"b\"\n{USER}{lines}\n")
    };
    only(&with(&second("path = [\"/a\", \"/login\"]")), message);
    only(&with(&second("path = \"/log*\"")), message);
    none(&with(&second("path = \"/admin\"")));
    none(&with(&second("path = \"/login\"\nmethod = \"PUT\"")));
    let hosts = second("path = \"/login\"\nhost = \"b\"").replacen(
        USER,
        &format!("{USER}host = \"a\"\n"),
        1,
    );
    none(&with(&hosts));
}

#[test]
fn a_rule_that_refuses_before_the_preset() {
    let message = "the rule `old` stands before this preset and refuses known clients too";
    let rule = |key: &str| {
        format!(
            "[[rules]]\nname = \"old\"\nmitigate = 'http.request.uri.path eq \"/login\"'\n\
             key = [\"{key}\"]\nlimit = 5\nperiod = \"1m\"\n"
        )
    };
    let exempt =
        "[[rules]]\nname = \"office\"\nmitigate = 'ip.src in {192.0.2.0/24}'\naction = \"allow\"\n";
    let preset = format!("{LOGIN}{USER}");
    only(
        &with(&format!("{preset}{}{exempt}", rule("tls.ja4"))),
        message,
    );
    none(&with(&format!("{preset}{}{exempt}", rule("ip.src"))));
    none(&with(&format!("{preset}{exempt}{}", rule("tls.ja4"))));
}

#[test]
fn a_key_by_user_that_says_nothing_about_requests_without_one() {
    let message = "requests without a user share one counter of this rule";
    let login = format!("{LOGIN}user = 'lower(http.request.headers[\"x-user\"])'\n");
    let rule = "[[rules]]\nname = \"u\"\nmitigate = 'http.request.uri.path eq \"/x\"'\nlimit = 5\nperiod = \"1m\"\n\
                key = ['lower(http.request.headers[\"x-user\"])']\n";
    let found = warnings(&with(&format!("{login}{rule}")));
    assert!(found.iter().any(|one| one == message), "{found:?}");
    let found = warnings(&with(&format!("{login}{rule}missing = \"skip\"\n")));
    assert!(!found.iter().any(|one| one == message), "{found:?}");
}

#[test]
fn presets_with_defaults() {
    let user = format!("{LOGIN}{USER}");
    let pages = "[[protect]]\nkind = \"pages\"\npath = \"/product/*\"\n";
    let app = "[[protect]]\nkind = \"login\"\nname = \"app\"\npath = \"/m/login\"\nuser_json = \"user\"\n";
    for preset in [&*user, pages, SIGNUP, app] {
        for more in ["", "strict = true\n", "dry_run = true\n"] {
            none(&with(&format!("{preset}{more}")));
        }
    }
    none(&with(&format!("{user}challenge = false\n")));
    none(&with(&format!("{user}{app}{SIGNUP}{pages}")));
    let challenge = "[challenge]\n[known_clients]\nlifetime = \"90d\"\n";
    none(&with(&format!("{challenge}{user}")));
}
