//! The message about an unknown command or option: names the command that does what the word means elsewhere.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::{Cli, print_error};
use crate::config::nearest;

/// Words of other programs, and the command that corresponds to them.
const HINTS: &[(&str, &str)] = &[
    (
        "validate verify test configtest checkconfig check-config lint -t -T --test --check --validate --configtest \
         --dry-run",
        "lockgate check",
    ),
    (
        "start serve server daemon up proxy --daemon -d",
        "lockgate run",
    ),
    ("restart hup --reload", "lockgate reload"),
    ("reopen rotate logrotate reopen-log", "lockgate reopen-logs"),
    ("quit shutdown kill halt down -s --stop", "lockgate stop"),
    (
        "healthcheck health-check healthz ready readyz ping",
        "lockgate health",
    ),
    ("stats state info ps", "lockgate status"),
    ("monitor watch dashboard", "lockgate top"),
    ("new create generate setup config-init", "lockgate init"),
    ("simulate trace dry-run try", "lockgate explain"),
    ("block", "lockgate ban"),
    ("unblock", "lockgate unban"),
    ("convert", "lockgate import"),
    ("completion", "lockgate completions"),
    ("docs doc documentation", "lockgate help"),
    ("version ver -v", "lockgate --version"),
];

/// Reports an error in the arguments. Help and the version are no errors.
pub fn report(error: &clap::Error) -> ExitCode {
    match message(error) {
        Some(message) => print_error(&format!("lockgate: {message}")),
        None => {
            // Nothing is left to report to if this fails.
            let _ = error.print();
        }
    }
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Returns the message about an unknown word. `None` for other errors.
fn message(error: &clap::Error) -> Option<String> {
    let (kind, what) = match error.kind() {
        ErrorKind::InvalidSubcommand => (ContextKind::InvalidSubcommand, "command"),
        ErrorKind::UnknownArgument => (ContextKind::InvalidArg, "option"),
        _ => return None,
    };
    let Some(ContextValue::String(word)) = error.get(kind) else {
        return None;
    };
    let word = word.as_str();
    let hint = suggestion(word);
    if what == "command" {
        let hint = hint.map_or("`lockgate help` lists all of them".to_owned(), |hint| {
            format!("did you mean `{hint}`?")
        });
        Some(format!("unknown command `{word}`; {hint}"))
    } else {
        // An option of one command, such as `--form`, has the message of the parser.
        let (_, command) = HINTS.iter().find(|(words, _)| has(words, word))?;
        Some(format!(
            "unknown option `{word}`; did you mean `{command}`?"
        ))
    }
}

/// Returns the command that `word` probably means.
pub fn suggestion(word: &str) -> Option<String> {
    let lower = word.to_ascii_lowercase();
    if let Some((_, command)) = HINTS.iter().find(|(words, _)| has(words, &lower)) {
        return Some((*command).to_owned());
    }
    if lower.ends_with(".toml") {
        return Some(format!("lockgate run --config {word}"));
    }
    let cli = Cli::command();
    let names = cli.get_subcommands().map(clap::Command::get_name);
    nearest(&lower, names).map(|name| format!("lockgate {name}"))
}

fn has(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn said(arguments: &str) -> String {
        let words = std::iter::once("lockgate").chain(arguments.split(' '));
        message(&Cli::try_parse_from(words).unwrap_err()).unwrap()
    }

    #[test]
    fn words_of_other_programs_name_the_command() {
        for (arguments, expected) in [
            (
                "validate",
                "unknown command `validate`; did you mean `lockgate check`?",
            ),
            (
                "configtest gateway.toml",
                "unknown command `configtest`; did you mean `lockgate check`?",
            ),
            ("-t", "unknown option `-t`; did you mean `lockgate check`?"),
            (
                "-t -c gateway.toml",
                "unknown option `-t`; did you mean `lockgate check`?",
            ),
            (
                "Start",
                "unknown command `Start`; did you mean `lockgate run`?",
            ),
            (
                "restart",
                "unknown command `restart`; did you mean `lockgate reload`?",
            ),
            (
                "chekc",
                "unknown command `chekc`; did you mean `lockgate check`?",
            ),
            (
                "edge.toml",
                "unknown command `edge.toml`; did you mean `lockgate run --config edge.toml`?",
            ),
            (
                "xyzzy",
                "unknown command `xyzzy`; `lockgate help` lists all of them",
            ),
        ] {
            assert_eq!(said(arguments), expected);
        }
    }

    #[test]
    fn every_hint_is_an_argument_and_no_word_is_a_command() {
        let cli = Cli::command();
        let commands: Vec<&str> = cli.get_subcommands().map(clap::Command::get_name).collect();
        for (words, command) in HINTS {
            let name = command.strip_prefix("lockgate ").unwrap();
            assert!(commands.contains(&name) || name == "--version", "{name}");
            assert!(
                words
                    .split_whitespace()
                    .all(|word| !commands.contains(&word)),
                "{words}"
            );
        }
    }
}
