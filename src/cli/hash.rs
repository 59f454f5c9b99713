//! `lockgate hash`: prints the short keyed hash that stands for a secret value in logs and listings.

use std::io::{self, Read as _};
use std::path::Path;
use std::process::ExitCode;

use clap::Args;

use super::{ConfigArg, print, print_error};
use crate::clock::Clock;
use crate::config::{self, Diagnostics};
use crate::observe::Redactor;

/// The maximum size of a value on standard input, in bytes.
const MAX_VALUE: u64 = 16 << 20;

/// The arguments.
#[derive(Args, Debug)]
pub struct HashArgs {
    #[command(flatten)]
    config: ConfigArg,
    /// The value; `-` reads standard input, without the line feed at its end.
    #[arg(allow_hyphen_values = true)]
    value: String,
}

/// Prints the hash. Returns exit code 1 without `server.secret_file`.
pub fn hash(args: &HashArgs) -> ExitCode {
    let hashed = redactor(&args.config.config).and_then(|redactor| {
        let value = value(&args.value)?;
        Ok(redactor.hash(&value))
    });
    match hashed {
        Ok(hash) => print(&format!("{hash}\n")),
        Err(message) => {
            print_error(&message);
            ExitCode::FAILURE
        }
    }
}

/// Returns the redactor of the gateway. The error is a message.
fn redactor(path: &Path) -> Result<Redactor, String> {
    let mut diagnostics = Diagnostics::new();
    let (source, file) = config::load(path, &mut diagnostics);
    let compiled = file.and_then(|file| {
        let now = Clock::System.now();
        config::compile(&file, &source, now, None, &mut diagnostics)
    });
    let Some(blueprint) = compiled else {
        return Err(diagnostics.render(&source, false).trim_end().to_owned());
    };
    let Some(secrets) = blueprint.credentials.secrets else {
        return Err(format!(
            "lockgate: `hash` needs `server.secret_file` in {}: the gateway generates a secret at each start, \
             which is not known outside its process",
            path.display()
        ));
    };
    Ok(blueprint.redactor.with_secret(secrets.first()))
}

/// Returns the value that the argument means. The error is a message.
fn value(written: &str) -> Result<Vec<u8>, String> {
    if written != "-" {
        return Ok(written.as_bytes().to_vec());
    }
    let mut value = Vec::new();
    let read = io::stdin()
        .lock()
        .take(MAX_VALUE + 1)
        .read_to_end(&mut value);
    read.map_err(|error| format!("lockgate: cannot read standard input: {error}"))?;
    if value.len() as u64 > MAX_VALUE {
        return Err("lockgate: the value on standard input is larger than 16 MiB".to_owned());
    }
    if value.ends_with(b"\n") {
        value.pop();
    }
    if value.ends_with(b"\r") {
        value.pop();
    }
    Ok(value)
}
