//! `lockgate init`: writes a commented gateway.toml to start from.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;

use clap::Args;

use super::import::quote;
use super::{ConfigArg, print, print_error};
use crate::clock::Clock;
use crate::config::{self, ConfigSource, Diagnostics};

/// The arguments.
#[derive(Args, Debug)]
pub struct InitArgs {
    #[command(flatten)]
    config: ConfigArg,
    /// The address of the origin server.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9000")]
    upstream: String,
    /// The host to serve [default: any].
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// The certificate and its key, or `off` for plain HTTP [default: a self-signed development certificate].
    #[arg(long, num_args = 1..=2, value_names = ["CERTIFICATE", "KEY"])]
    tls: Vec<String>,
    /// Protect the login at this path.
    #[arg(long, value_name = "PATH")]
    login: Option<String>,
    /// The form field with the user name of the login.
    #[arg(long, value_name = "FIELD", requires = "login")]
    user_field: Option<String>,
}

/// Writes the file. Returns exit code 1 if it exists or if an argument is wrong.
pub fn init(args: &InitArgs) -> ExitCode {
    let path = &args.config.config;
    if let [only] = args.tls.as_slice()
        && only != PLAIN
    {
        print_error("lockgate: write --tls CERTIFICATE KEY, or --tls off for plain HTTP");
        return ExitCode::from(2);
    }
    let source = ConfigSource::new(path.display().to_string(), document(args));
    let diagnostics = checked(&source);
    // Problems of the machine, such as a certificate that expires soon.
    print_error_unless_empty(diagnostics.render(&source, false).trim_end());
    if diagnostics.has_errors() {
        return ExitCode::FAILURE;
    }
    match write(path, &source.text) {
        Ok(()) => print(&format!(
            "wrote {0}\ncheck it: lockgate check --config {0}\nstart it: lockgate run --config {0}\n",
            path.display()
        )),
        Err(error) => {
            let why = match error.kind() {
                ErrorKind::AlreadyExists => "it already exists".to_owned(),
                _ => error.to_string(),
            };
            print_error(&format!("lockgate: cannot write {}: {why}", path.display()));
            ExitCode::FAILURE
        }
    }
}

/// Returns what `lockgate check` would report.
fn checked(source: &ConfigSource) -> Diagnostics {
    let mut diagnostics = Diagnostics::new();
    if let Some(file) = config::read(source, &mut diagnostics) {
        let now = Clock::System.now();
        config::compile(&file, source, now, None, &mut diagnostics);
    }
    diagnostics
}

fn print_error_unless_empty(text: &str) {
    if !text.is_empty() {
        print_error(text);
    }
}

/// Creates the file. An existing file stays unchanged.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())
}

fn document(args: &InitArgs) -> String {
    let mut text = String::from(HEAD);
    text.push_str(if args.login.is_some() {
        SECRET_OF_COOKIES
    } else {
        SECRET
    });
    match args.tls.as_slice() {
        [cert, key] => {
            let (cert, key) = (quote::word(cert), quote::word(key));
            text.push_str(LISTENER);
            let _ = writeln!(
                text,
                "[listeners.tls]\ncertificates = [{{ cert = {cert}, key = {key} }}]"
            );
        }
        [_] => text.push_str(PLAIN_LISTENER),
        _ => {
            text.push_str(LISTENER);
            text.push_str(NO_CERTIFICATE);
        }
    }
    text.push_str(ADMIN);
    text.push_str("\n[[upstreams]]\nname = \"app\"\n");
    if is_name(&args.upstream) {
        text.push_str(NAMED_SERVER);
    }
    let _ = writeln!(text, "servers = [{}]", quote::word(&args.upstream));
    text.push_str("\n[[routes]]\n");
    match &args.host {
        Some(host) => {
            let _ = writeln!(text, "hosts = [{}]", quote::word(host));
        }
        None => text.push_str("# hosts = [\"example.com\"]   # absent: any host\n"),
    }
    text.push_str("upstream = \"app\"\n");
    if let Some(path) = &args.login {
        login(&mut text, path, args.user_field.as_deref());
    }
    text
}

/// Returns whether the address of a server has a DNS name, which may be unknown on this machine.
fn is_name(server: &str) -> bool {
    let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
    let is_address = server.parse::<SocketAddr>().is_ok() || host.parse::<IpAddr>().is_ok();
    !is_address && host != "localhost" && !server.starts_with("unix:")
}

fn login(text: &mut String, path: &str, user_field: Option<&str>) {
    text.push_str(PROTECT);
    if user_field.is_none() {
        text.push_str(ALLOW_NO_USER);
    }
    let _ = writeln!(
        text,
        "[[protect]]\nkind = \"login\"\npath = {}",
        quote::word(path)
    );
    match user_field {
        Some(field) => {
            let _ = writeln!(text, "user_field = {}", quote::word(field));
        }
        None => text.push_str(NO_USER),
    }
    text.push_str(LOGIN_SETTINGS);
}

const HEAD: &str = "\
# The configuration of lockgate. `lockgate help configuration` explains every setting.

[server]
";

const SECRET: &str = "\
# The secret of the hashes in logs, so that they stay the same after a restart. Create it:
# (umask 077; head -c 32 /dev/urandom > secret)
# secret_file = \"secret\"
";

const SECRET_OF_COOKIES: &str = "\
# The secret of cookies and of hashes in logs. Without it, a restart makes every known device a new one. Create it:
# (umask 077; head -c 32 /dev/urandom > secret)
# Then remove the comment `lockgate: allow cookies-no-secret-file` below.
# secret_file = \"secret\"
";

/// The value of `--tls` for plain HTTP.
const PLAIN: &str = "off";

const LISTENER: &str = "
[[listeners]]
address = \"0.0.0.0:8443\"
";

const PLAIN_LISTENER: &str = "
[[listeners]]
address = \"0.0.0.0:8080\"
";

const NO_CERTIFICATE: &str = "\
# Without certificates, the gateway uses a self-signed development certificate, of which `lockgate check` warns:
# lockgate: allow development-certificate
[listeners.tls]
# certificates = [{ cert = \"site.pem\", key = \"site.key\" }]
";

const ADMIN: &str = "
# The dashboard, metrics and health checks, and what `lockgate status`, `top` and `health` use.
[admin]
address = \"127.0.0.1:9901\"
";

const NAMED_SERVER: &str = "\
# The name may be unknown on this machine:
# lockgate: allow unresolved-server
";

const PROTECT: &str = "
# Known devices log in as always. New devices solve a one-second check during an attack.
# `lockgate rules` prints the rules of this preset, `lockgate help presets` explains them.
# lockgate: allow cookies-no-secret-file
";

/// The preset works without the user, but does not count guesses at one account.
const ALLOW_NO_USER: &str = "\
# lockgate: allow protect-no-user
";

const NO_USER: &str = "\
# The form field with the user name, so that guesses at one account are counted together; for a JSON login write
# user_json = \"user\". Then remove the comment about protect-no-user above.
# user_field = \"user\"
";

const LOGIN_SETTINGS: &str = "\
# What a failed login looks like.
# failed = 'http.response.code in {401 403}'
# First only count and log, for a week with your busiest hour.
# dry_run = true
";

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: InitArgs,
    }

    fn written(arguments: &str) -> String {
        let line = Line::try_parse_from(arguments.split_whitespace()).unwrap();
        document(&line.args)
    }

    /// Reads a text whose certificates need not exist.
    fn is_valid(text: &str) {
        let source = ConfigSource::new("gateway.toml", text);
        let mut diagnostics = Diagnostics::new();
        config::read(&source, &mut diagnostics);
        let errors = diagnostics.render(&source, false);
        assert!(!diagnostics.has_errors(), "{errors}");
    }

    #[test]
    fn the_file_has_no_warnings() {
        for arguments in [
            "init",
            "init --host *.shop.example --upstream app.internal:9000",
            "init --tls off --upstream unix:/run/app.sock",
            "init --login /login",
            "init --login /in --user-field log --upstream [::1]:9000",
        ] {
            let source = ConfigSource::new("gateway.toml", written(arguments));
            let found = checked(&source).render(&source, false);
            assert_eq!(found, "", "{arguments}");
        }
    }

    #[test]
    fn only_a_name_may_be_unknown() {
        for name in ["app.internal:9000", "app"] {
            assert!(is_name(name), "{name}");
        }
        for address in [
            "127.0.0.1:1",
            "127.0.0.1",
            "[::1]:1",
            "localhost:1",
            "unix:/a",
        ] {
            assert!(!is_name(address), "{address}");
        }
    }

    #[test]
    fn every_comment_with_a_setting_can_be_used() {
        for arguments in [
            "init",
            "init --login /login",
            "init --login /in --user-field log",
        ] {
            let text = written(arguments);
            is_valid(&text);
            let used = text.lines().map(|line| match line.strip_prefix("# ") {
                Some(directive) if directive.starts_with("lockgate: ") => line,
                Some(setting) if setting.contains(" = ") && !setting.contains(": ") => setting,
                Some(_) => "",
                None => line,
            });
            let used: Vec<&str> = used.filter(|line| !line.contains("user_json")).collect();
            is_valid(&used.join("\n"));
        }
    }

    #[test]
    fn the_arguments_are_in_the_file() {
        let text = written(
            "init --upstream unix:/run/app.sock --host shop.example --tls a.pem a.key \
             --login /login --user-field user",
        );
        for line in [
            "servers = [\"unix:/run/app.sock\"]",
            "hosts = [\"shop.example\"]",
            "certificates = [{ cert = \"a.pem\", key = \"a.key\" }]",
            "path = \"/login\"",
            "user_field = \"user\"",
        ] {
            assert!(text.lines().any(|own| own == line), "{line}\n{text}");
        }
        assert!(!written("init").contains("[[protect]]"));
    }
}
