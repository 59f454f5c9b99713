//! `lockgate completions`: the script that lets a shell complete this command line.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use super::{Cli, print};

/// Prints the script for `shell`.
pub fn completions(shell: Shell) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "lockgate", &mut script);
    print(&String::from_utf8_lossy(&script))
}
