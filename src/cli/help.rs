//! `lockgate help`: the usage of a command, or a page of the documentation.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::{Command, CommandFactory};

use super::unknown_command::suggestion;
use super::{Cli, print, print_error};
use crate::config::nearest;

/// A page of the documentation.
struct HelpTopic {
    /// The name of the page, as written after `lockgate help`: the file name without its extension.
    name: &'static str,
    text: &'static str,
}

/// Lists the pages of `docs/` as [`HelpTopic`]s.
macro_rules! topics {
    ($($name:literal)*) => {
        &[$(HelpTopic {
            name: $name,
            text: include_str!(concat!("../../docs/", $name, ".md")),
        }),*]
    };
}

/// Every page of `docs/` except its index.
const TOPICS: &[HelpTopic] = topics! {
    "rules" "rule-at-a-glance" "presets" "guide" "cookbook" "keys" "rule-language" "body-fields" "shadow" "challenge" "known-clients" "configuration" "check" "explain"
    "troubleshooting" "operations" "installation" "admin-api" "dashboard" "alerts" "fleet" "upstreams" "tls" "http" "http2" "limits" "what-it-is-not" "import-cloudflare"
    "from-nginx" "from-haproxy" "from-envoy" "from-traefik"
};

/// Prints the page or the usage that `words` name; without words, the usage of lockgate and the list of pages.
pub fn help(words: &[String]) -> ExitCode {
    let page = match words {
        [name] => TOPICS.iter().find(|topic| topic.name == name),
        _ => None,
    };
    match (usage(words), page) {
        (Some(usage), Some(page)) => print(&format!("{usage}\n{}", readable(page.text))),
        (None, Some(page)) => print(&readable(page.text)),
        (Some(usage), None) if words.is_empty() => print(&format!("{usage}\n{}", list())),
        (Some(usage), None) => print(&usage),
        (None, None) => unknown(&words.join(" ")),
    }
}

/// The usage of the command with these names.
fn usage(names: &[String]) -> Option<String> {
    let mut command: Command = Cli::command();
    command.build();
    for name in names {
        command = command.find_subcommand(name)?.clone();
    }
    Some(command.render_long_help().to_string())
}

/// The names and titles of all pages.
fn list() -> String {
    let mut list = "Pages (lockgate help PAGE):\n".to_owned();
    for topic in TOPICS {
        let title = topic.text.lines().next().unwrap_or_default();
        let _ = writeln!(
            list,
            "  {:<18} {}",
            topic.name,
            title.trim_start_matches("# ")
        );
    }
    list
}

fn unknown(words: &str) -> ExitCode {
    let topic = nearest(words, TOPICS.iter().map(|topic| topic.name));
    let hint = match topic {
        Some(topic) => format!("; did you mean `{topic}`?"),
        None => suggestion(words).map_or_else(String::new, |command| {
            format!("; did you mean `{command}`?")
        }),
    };
    print_error(&format!(
        "lockgate: no command or page is called `{words}`{hint}"
    ));
    print_error("`lockgate help` lists all of them");
    ExitCode::from(2)
}

/// A page with its links in the form that the terminal can follow: `rules.md#keys` becomes `lockgate help rules`.
/// Other Markdown stays, because it reads well as it is.
fn readable(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut rest = page;
    while let Some((before, label, target, after)) = next_link(rest) {
        text.push_str(before);
        let file = target.split('#').next().unwrap_or_default();
        let name = file.strip_suffix(".md").unwrap_or_default();
        let is_page = TOPICS.iter().any(|topic| topic.name == name);
        let _ = match (is_page, target.starts_with('#')) {
            (true, _) if label == file => write!(text, "`lockgate help {name}`"),
            (true, _) => write!(text, "{label} (`lockgate help {name}`)"),
            (false, true) => write!(text, "{label}"),
            (false, false) => write!(text, "{label} ({target})"),
        };
        rest = after;
    }
    text.push_str(rest);
    text
}

/// Splits `text` at its first link: the text before it, its label, its target and the text after it.
fn next_link(text: &str) -> Option<(&str, &str, &str, &str)> {
    let middle = text.find("](")?;
    let label_start = text.get(..middle)?.rfind('[')?;
    let target_end = middle + text.get(middle..)?.find(')')?;
    Some((
        text.get(..label_start)?,
        text.get(label_start + 1..middle)?,
        text.get(middle + 2..target_end)?,
        text.get(target_end + 1..)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_of_the_documentation_is_a_topic() {
        let pages = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/docs")).unwrap();
        for page in pages {
            let name = page.unwrap().file_name().into_string().unwrap();
            let Some(name) = name.strip_suffix(".md") else {
                continue;
            };
            assert!(
                name == "README" || TOPICS.iter().any(|topic| topic.name == name),
                "{name}"
            );
        }
    }

    #[test]
    fn links_name_the_command_that_shows_their_target() {
        let page = "See [rules.md](rules.md#keys), [keys](#keys) and [nginx](https://nginx.org). [not] (a link)";
        let shown = "See `lockgate help rules`, keys and nginx (https://nginx.org). [not] (a link)";
        assert_eq!(readable(page), shown);
    }

    #[test]
    fn a_command_shows_its_usage_and_an_unknown_word_nothing() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(
            usage(&words("import cloudflare"))
                .unwrap()
                .contains("lockgate import cloudflare")
        );
        assert_eq!(usage(&words("no-such-thing")), None);
    }
}
