//! `lockgate fields`: the rule language's fields and functions.

use std::fmt::Write as _;
use std::process::ExitCode;

use super::print;
use crate::expr::{self, Phase};
use crate::facts::fields;

/// Prints the table of fields and the table of functions.
pub fn fields() -> ExitCode {
    let mut text = String::from("Fields\n");
    for field in fields::all() {
        let phase = match field.phase {
            Phase::Request => "",
            Phase::Body => " (in rules only)",
            Phase::Response => " (in `count` and `cost` only)",
        };
        let ty = field
            .ty()
            .words()
            .split(' ')
            .next_back()
            .unwrap_or_default();
        let _ = writeln!(text, "  {:<40} {ty:<8} {}{phase}", field.name, field.doc);
        for alias in field.aliases {
            let _ = writeln!(text, "  {alias:<40} {ty:<8} alias of {}", field.name);
        }
    }
    text.push_str("\nFunctions\n");
    for function in expr::functions() {
        let _ = writeln!(text, "  {:<40} {}", function.signature, function.doc);
    }
    print(&text)
}
