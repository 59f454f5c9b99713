//! The `lockgate` program: arguments → [`lockgate::cli`] → exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    lockgate::cli::main()
}
