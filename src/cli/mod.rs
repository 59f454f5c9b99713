//! The command line: one file per command.

mod admin_client;
mod bans;
mod check;
mod control;
pub(crate) mod explain;
mod fields;
mod hash;
mod help;
mod import;
mod init;
mod man;
mod records;
mod rules;
mod run;
mod schema;
mod status;
mod top;
mod unknown_command;

use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use self::admin_client::AdminArgs;
use crate::config::LintCode;

/// An edge gateway that counts one thing and stops another.
#[derive(Debug, Parser)]
#[command(name = "lockgate", version, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    config: ConfigArg,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the gateway in the foreground (the default).
    Run(ConfigArg),
    /// Check the configuration and every file that it names.
    Check {
        #[command(flatten)]
        config: ConfigArg,
        /// The output format.
        #[arg(long, value_enum, default_value_t)]
        format: OutputFormat,
        /// Silence the warnings with this code, for example `shared-key`. Repeatable.
        #[arg(long, value_name = "CODE", value_parser = LintCode::from_name)]
        allow: Vec<LintCode>,
        /// Exit with 1 if there are warnings.
        #[arg(long)]
        deny_warnings: bool,
    },
    /// Write a commented gateway.toml to start from.
    Init(Box<init::InitArgs>),
    /// Reload the configuration of a running gateway, and show the result.
    Reload(AdminArgs),
    /// Have a running gateway reopen its access log.
    ReopenLogs(ConfigArg),
    /// Have a running gateway finish its requests and stop.
    Stop(ConfigArg),
    /// Exit with 0 if a running gateway is ready. For health checks of containers.
    Health(AdminArgs),
    /// Show the state of a running gateway. Exits with 1 if something is critical.
    Status(status::StatusArgs),
    /// Show a live view of a running gateway in the terminal.
    Top(top::TopArgs),
    /// List the active bans of a running gateway.
    Bans(bans::BansArgs),
    /// Ban a key by hand.
    Ban(bans::BanArgs),
    /// Unban a key, or all keys of a rule.
    Unban(bans::UnbanArgs),
    /// Show what each rule would do with a request, and why.
    Explain(Box<explain::ExplainArgs>),
    /// List the rules in effect, with those of presets.
    Rules {
        #[command(flatten)]
        config: ConfigArg,
        /// Print the rules as TOML, with inlined expressions. They can replace the presets.
        #[arg(long)]
        expanded: bool,
    },
    /// Print the short hash that stands for a secret value in logs and listings.
    Hash(hash::HashArgs),
    /// List the fields and functions of the rule language.
    Fields,
    /// Print the JSON Schema of gateway.toml.
    Schema,
    /// Convert the rules of another product to `[[rules]]` and print them.
    Import {
        #[command(subcommand)]
        from: Product,
    },
    /// Show the usage of a command or a page of the documentation; without either, list them.
    Help {
        /// A command, or a page such as `rules` or `cookbook`.
        topic: Vec<String>,
    },
    /// Print a script that completes this command line in a shell.
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print a man page.
    Man,
}

#[derive(Debug, Subcommand)]
enum Product {
    /// A ruleset as Cloudflare's API returns it.
    Cloudflare {
        /// The JSON file; `-` reads standard input.
        file: PathBuf,
    },
}

#[derive(Args, Debug)]
struct ConfigArg {
    /// The configuration file.
    // Global, so that it can precede the command too.
    #[arg(
        short,
        long,
        global = true,
        env = "LOCKGATE_CONFIG",
        default_value = "gateway.toml"
    )]
    config: PathBuf,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    #[default]
    Human,
    Json,
}

/// Runs the command that the arguments name.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return unknown_command::report(&error),
    };
    match cli.command {
        None => run::run(&cli.config.config),
        Some(Command::Run(config)) => run::run(&config.config),
        Some(Command::Check {
            config,
            format,
            allow,
            deny_warnings,
        }) => check::check(&config.config, format, &allow, deny_warnings),
        Some(Command::Init(args)) => init::init(&args),
        Some(Command::Reload(args)) => control::reload(&args),
        Some(Command::ReopenLogs(config)) => control::reopen_logs(&config),
        Some(Command::Stop(config)) => control::stop(&config),
        Some(Command::Health(args)) => control::health(&args),
        Some(Command::Status(args)) => status::status(&args),
        Some(Command::Top(args)) => top::top(&args),
        Some(Command::Bans(args)) => bans::bans(&args),
        Some(Command::Ban(args)) => bans::ban(&args),
        Some(Command::Unban(args)) => bans::unban(&args),
        Some(Command::Explain(args)) => explain::explain(&args),
        Some(Command::Rules { config, expanded }) => rules::rules(&config.config, expanded),
        Some(Command::Hash(args)) => hash::hash(&args),
        Some(Command::Fields) => fields::fields(),
        Some(Command::Schema) => schema::schema(),
        Some(Command::Import {
            from: Product::Cloudflare { file },
        }) => import::cloudflare(&file),
        Some(Command::Help { topic }) => help::help(&topic),
        Some(Command::Completions { shell }) => completions(shell),
        Some(Command::Man) => man::man(),
    }
}

/// `lockgate completions`: prints the completion script for a shell.
fn completions(shell: clap_complete::Shell) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "lockgate", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Prints `text`. Returns exit code 1 and reports the error if printing fails. A closed pipe
/// (`lockgate fields | head`) is not an error.
fn print(text: &str) -> ExitCode {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        // Truncated output, such as half a schema, is not a success.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            print_error(&format!(
                "lockgate: cannot write to standard output: {error}"
            ));
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Prints a line on standard error. Ignores a write error, for which `eprintln` would panic.
fn print_error(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
