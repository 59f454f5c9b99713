//! Presets: a reload that replaces one by the rules that it expands to, and what the commands print about them.

mod honest_traffic;
mod reload_under_attack;

use crate::harness::{Challenge, Client, Folder, Origin, Process, Running};

const LOGIN: &str = r#"
[[protect]]
kind = "login"
path = "/login"
user_field = "user"
rules.site = { limit = 3 }
"#;

const LISTENER: &str = "[[listeners]]\naddress = \"127.0.0.1:0\"\n[listeners.tls]\n";

/// What `lockgate rules --expanded` prints for a preset.
fn expanded(preset: &str) -> String {
    let folder = Folder::new();
    folder.write("gateway.toml", format!("{LISTENER}{preset}"));
    printed(&folder, &["rules", "--expanded"])
}

/// What a command prints.
fn printed(folder: &Folder, arguments: &[&str]) -> String {
    let output = Process::output(folder, arguments);
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    text
}

/// An origin server that knows one password.
pub fn password_origin() -> Origin {
    Origin::answering(|seen| {
        let is_right = seen.body.ends_with(b"password=right");
        let status = if is_right {
            "204 No Content"
        } else {
            "401 Unauthorized"
        };
        format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").into_bytes()
    })
}

/// A login with a form.
pub fn log_in(client: Client, user: &str, password: &str) -> Client {
    let form = "application/x-www-form-urlencoded";
    let body = format!("user={user}&password={password}");
    client
        .header("content-type", form)
        .body(body.as_bytes())
        .post("/login")
}

#[test]
fn the_expansion_of_a_preset_keeps_its_counters_and_bans() {
    let rules = expanded(LOGIN);
    let gateway = Running::with_origin(password_origin(), LOGIN);
    let guess = |user: &str| log_in(gateway.tls_client(), user, "wrong").send().status;
    assert_eq!(guess("a"), 401);
    assert_eq!(guess("b"), 401);
    gateway.reload(&rules).unwrap();
    assert_eq!(guess("c"), 401);
    assert_eq!(guess("d"), 401);
    let banned = log_in(gateway.tls_client(), "e", "wrong").send();
    assert_eq!(banned.status, 429);
    assert_eq!(banned.header("x-lockgate-challenge"), Some("required"));
    gateway.reload(LOGIN).unwrap();
    assert_eq!(guess("f"), 429);
    gateway.reload(&rules).unwrap();
    assert_eq!(guess("g"), 429);
}

#[test]
fn a_device_stays_known_when_the_preset_is_replaced() {
    let gateway = Running::with_origin(password_origin(), LOGIN);
    let answer = log_in(gateway.tls_client(), "alice", "right").send();
    let cookie = answer.header("set-cookie").unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let strict = format!("{LOGIN}strict = true\n").replace("rules.site = { limit = 3 }\n", "");
    for rules in [expanded(&strict), strict] {
        gateway.reload(&rules).unwrap();
        let known = gateway.tls_client().header("cookie", &cookie);
        assert_eq!(log_in(known, "Alice", "right").send().status, 204);
        let known = gateway.tls_client().header("cookie", &cookie);
        assert_eq!(log_in(known, "bob", "right").send().status, 429);
    }
}

/// Bots that share a clearance share its failures too.
#[test]
fn a_clearance_is_worth_few_failures() {
    let gateway = Running::with_origin(
        password_origin(),
        &format!("{LOGIN}strict = true\n").replace("rules.site = { limit = 3 }\n", ""),
    );
    let client = gateway.tls_client();
    let guess = |number: usize, cookie: &str| {
        let address = format!("203.0.113.{number}");
        let bot = gateway.tls_client().from(&address).header("cookie", cookie);
        log_in(bot, &format!("victim{number}"), "guess").send()
    };
    let cookie = Challenge::of(&guess(0, "none=1")).clear(&client);
    let statuses: Vec<u16> = (1..7).map(|number| guess(number, &cookie).status).collect();
    assert_eq!(statuses, [401, 401, 401, 401, 429, 429]);
    // Another solution is needed, and another clearance is not affected.
    let other = Challenge::of(&guess(7, &cookie)).clear(&client);
    assert_ne!(other, cookie);
    assert_eq!(guess(8, &other).status, 401);
    assert_eq!(guess(9, &cookie).status, 429);
}

/// The responses of a burst come too late to count its failures.
#[test]
fn a_burst_with_one_clearance_is_worth_few_logins() {
    let gateway = Running::with_origin(
        Origin::answering(|_| {
            std::thread::sleep(std::time::Duration::from_millis(300));
            b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n".to_vec()
        }),
        &format!("{LOGIN}strict = true\n").replace("rules.site = { limit = 3 }\n", ""),
    );
    let client = gateway.tls_client();
    let unsolved = log_in(client.clone(), "victim", "guess").send();
    let cookie = Challenge::of(&unsolved).clear(&client);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let guess = |number: usize| {
            let bot = gateway.tls_client().header("cookie", &cookie);
            scope.spawn(move || {
                log_in(bot, &format!("victim{number}"), "guess")
                    .send()
                    .status
            })
        };
        let guesses: Vec<_> = (0..20).map(guess).collect();
        guesses
            .into_iter()
            .map(|guess| guess.join().unwrap())
            .collect()
    });
    let reached = statuses.iter().filter(|status| **status == 401).count();
    assert_eq!((reached, statuses.len()), (5, 20), "{statuses:?}");
    assert_eq!(gateway.origin.seen().len(), 5);
}

/// A signup without a user must not get the user of the login.
#[test]
fn registrations_without_a_user_make_no_user_known_when_expanded() {
    let signup = "[[protect]]\nkind = \"signup\"\npath = \"/signup\"\nactions = \"/invite\"\n";
    let text = expanded(&format!("{LOGIN}{signup}"));
    let (tables, _) = text.split_once("[[rules]]").unwrap();
    assert!(tables.contains("successes without a user"), "{tables}");
    assert!(!tables.contains("/signup"), "{tables}");
    Running::with(&text);
}

#[test]
fn several_presets_expand_to_one_table() {
    let more = "[[protect]]\nkind = \"signup\"\npath = \"/signup\"\nactions = \"/invite\"\nuser_json = \"mail\"\n";
    let text = expanded(&format!("{LOGIN}{more}"));
    let (tables, _) = text.split_once("[[rules]]").unwrap();
    assert!(
        tables.starts_with("# implied by [[protect]]\n[challenge]\n"),
        "{tables}"
    );
    assert!(tables.contains("one table has one `user`"), "{tables}");
    assert_eq!(tables.matches("\nsuccess = ").count(), 1, "{tables}");
    assert!(tables.contains(") or ("), "{tables}");
    assert!(tables.contains("\nlifetime = \"180d\"\n"), "{tables}");
    Running::with(&text);
    let pages = expanded("[[protect]]\nkind = \"pages\"\npath = \"/p/*\"\n");
    assert!(pages.contains("\nsuccess = 'false'\n"), "{pages}");
    Running::with(&pages);
}

#[test]
fn check_says_what_the_preset_of_init_does() {
    let folder = Folder::new();
    printed(
        &folder,
        &["init", "--login", "/login", "--user-field", "user"],
    );
    let text = printed(&folder, &["check"]);
    for part in [
        "protect \"login\" (gateway.toml:",
        "): POST /login, user from form field \"user\"\n  10 rules before all rules: known-device account address",
        "all new devices after 30 failures in 1m if over 40 % fail",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("warning["), "{text}");
    let known =
        "and not http.response.code in {401 403}`; cookie __Host-lockgate-client, 180 days\n";
    assert!(text.contains(known), "{text}");
    let table = printed(&folder, &["rules"]);
    assert!(table.contains("login/site"), "{table}");
}

#[test]
fn check_says_that_pages_alone_know_nobody() {
    let folder = Folder::new();
    let pages = "[[protect]]\nkind = \"pages\"\npath = \"/p/*\"\n";
    folder.write("gateway.toml", format!("{LISTENER}{pages}"));
    let text = printed(&folder, &["check"]);
    assert!(
        text.contains("  known        nobody: add a `login`"),
        "{text}"
    );
    let known = "[known_clients]\nlifetime = \"30d\"\ndomain = \"shop.example\"\n";
    folder.write("gateway.toml", format!("{LISTENER}{known}{LOGIN}{pages}"));
    let text = printed(&folder, &["check"]);
    assert!(!text.contains("nobody"), "{text}");
    assert!(
        text.contains("cookie __Secure-lockgate-client, 30 days"),
        "{text}"
    );
}
