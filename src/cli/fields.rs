//! `lockgate fields`: the rule language's fields and functions.

use std::fmt::Write as _;
use std::process::ExitCode;

use super::print;
use crate::expr::{self, Phase, Type};
use crate::facts::fields;

/// Prints both tables.
pub fn fields() -> ExitCode {
    let mut text = String::from("Fields\n");
    for field in fields::all() {
        let phase = match field.phase {
            Phase::Request => "",
            Phase::Response => " (in `count` and `cost` only)",
        };
        let ty = type_name(field.ty());
        let _ = writeln!(text, "  {:<40} {ty:<8} {}{phase}", field.name, field.doc);
        for alias in field.aliases {
            let _ = writeln!(text, "  {alias:<40} {ty:<8} the same as {}", field.name);
        }
    }
    text.push_str("\nFunctions\n");
    for function in expr::functions() {
        let _ = writeln!(text, "  {:<40} {}", function.signature, function.doc);
    }
    print(&text)
}

const fn type_name(ty: Type) -> &'static str {
    match ty {
        Type::Bytes => "string",
        Type::Int => "integer",
        Type::Ip => "address",
        Type::Bool => "boolean",
        Type::Map => "map",
        Type::Array => "list",
    }
}
