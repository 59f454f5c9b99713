//! `lockgate man`: prints one man page for all commands.

use std::io;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_mangen::Man;

use super::{Cli, print, print_error};

pub(super) fn man() -> ExitCode {
    match page() {
        Ok(page) => print(&page),
        Err(error) => {
            print_error(&format!("lockgate: cannot write the man page: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Returns the page: the program, then a section for each command.
fn page() -> io::Result<String> {
    let mut program = Cli::command();
    program.build();
    let mut page = Vec::new();
    let man = Man::new(program.clone());
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    let mut page = String::from_utf8_lossy(&page).into_owned();
    for command in program.get_subcommands().filter(|one| !one.is_hide_set()) {
        let name = command.get_bin_name().unwrap_or(command.get_name());
        page.push_str(&format!(".SH \"{}\"\n", name.to_uppercase()));
        page.push_str(&section(command.clone())?);
    }
    Ok(page)
}

/// Returns the parts of a command as subsections.
fn section(command: clap::Command) -> io::Result<String> {
    let has_options = command.get_arguments().any(|one| !one.is_hide_set());
    let man = Man::new(command);
    let mut parts = Vec::new();
    man.render_description_section(&mut parts)?;
    man.render_synopsis_section(&mut parts)?;
    if has_options {
        man.render_options_section(&mut parts)?;
    }
    Ok(String::from_utf8_lossy(&parts).replace(".SH ", ".SS "))
}
