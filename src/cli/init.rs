//! `lockgate init`: writes a commented gateway.toml to start from.

use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

use clap::Args;

use super::import::quote;
use super::{ConfigArg, print, print_error};
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
    /// The certificate and its key [default: a self-signed development certificate].
    #[arg(long, num_args = 2, value_names = ["CERTIFICATE", "KEY"])]
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
    let text = document(args);
    let source = ConfigSource::new(path.display().to_string(), text);
    let mut diagnostics = Diagnostics::new();
    config::read(&source, &mut diagnostics);
    if diagnostics.has_errors() {
        print_error(diagnostics.render(&source, false).trim_end());
        return ExitCode::FAILURE;
    }
    let file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path);
    match file.and_then(|mut file| file.write_all(source.text.as_bytes())) {
        Ok(()) => print(&format!(
            "wrote {0}; check it with `lockgate check --config {0}`\n",
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

fn document(args: &InitArgs) -> String {
    let mut text = String::from(HEAD);
    text.push_str("\n[[listeners]]\naddress = \"0.0.0.0:8443\"\n[listeners.tls]\n");
    match args.tls.as_slice() {
        [cert, key] => {
            let (cert, key) = (quote::word(cert), quote::word(key));
            let _ = writeln!(text, "certificates = [{{ cert = {cert}, key = {key} }}]");
        }
        _ => text.push_str(NO_CERTIFICATE),
    }
    let upstream = quote::word(&args.upstream);
    let _ = writeln!(
        text,
        "\n[[upstreams]]\nname = \"app\"\nservers = [{upstream}]"
    );
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

fn login(text: &mut String, path: &str, user_field: Option<&str>) {
    let _ = writeln!(text, "{PROTECT}path = {}", quote::word(path));
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
# The secret of cookies and of hashes in logs, so that they survive a restart. Create it:
# (umask 077; head -c 32 /dev/urandom > secret)
# secret_file = \"secret\"
";

const NO_CERTIFICATE: &str = "\
# Without certificates, the gateway uses a self-signed development certificate.
# certificates = [{ cert = \"site.pem\", key = \"site.key\" }]
";

const PROTECT: &str = "
# Known devices log in as always. New devices solve a one-second check during an attack.
# `lockgate rules` prints the rules of this preset, `lockgate help presets` explains them.
[[protect]]
kind = \"login\"
";

const NO_USER: &str = "\
# The form field with the user name; for a JSON login write user_json = \"user\".
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

    fn is_valid(text: &str) {
        let source = ConfigSource::new("gateway.toml", text);
        let mut diagnostics = Diagnostics::new();
        config::read(&source, &mut diagnostics);
        let errors = diagnostics.render(&source, false);
        assert!(!diagnostics.has_errors(), "{errors}");
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
                Some(setting) if setting.contains(" = ") && !setting.contains(": ") => setting,
                Some(_) => "",
                None => line,
            });
            let used: Vec<&str> = used
                .filter(|line| !line.contains("write user_json"))
                .collect();
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
