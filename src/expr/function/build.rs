//! Builds the terms of function calls. The checker has compared the arguments with the parameters;
//! only invalid values are left to refuse.

use super::{Built, CallArgs, Fault};
use crate::expr::json::JsonStep;
use crate::expr::replace::{ReplaceCall, ReplacePattern};
use crate::expr::term::{
    BoolTerm, BytesTerm, BytesTest, CompiledTerm, EachTerm, IntTerm, StringSource,
};
use crate::expr::transform::TransformCall;
use crate::expr::wildcard::WildcardPattern;

/// The most parts that `split` returns.
const MAX_PARTS: usize = 128;

pub(super) fn any(mut args: CallArgs) -> Built {
    let (source, each) = args.tests()?;
    Ok(CompiledTerm::Bool(BoolTerm::Any(source, Box::new(each))))
}

pub(super) fn all(mut args: CallArgs) -> Built {
    let (source, each) = args.tests()?;
    Ok(CompiledTerm::Bool(BoolTerm::All(source, Box::new(each))))
}

/// The checker has replaced map and name by the list of the entry's values.
pub(super) fn has_key(mut args: CallArgs) -> Built {
    let (entry, _) = args.list()?;
    Ok(CompiledTerm::Bool(BoolTerm::Any(
        entry,
        EachTerm::of(BoolTerm::Const(true)),
    )))
}

pub(super) fn has_value(mut args: CallArgs) -> Built {
    let (source, each) = args.list()?;
    let CompiledTerm::Bytes(each) = each else {
        return Err((0, "`has_value` looks for a string among strings".into()));
    };
    let equal = BoolTerm::Bytes(each, BytesTest::Eq(args.quoted()?));
    Ok(CompiledTerm::Bool(BoolTerm::Any(
        source,
        EachTerm::of(equal),
    )))
}

pub(super) fn starts_with(mut args: CallArgs) -> Built {
    let (text, prefix) = (args.bytes()?, args.quoted()?);
    Ok(CompiledTerm::Bool(BoolTerm::Bytes(
        text,
        BytesTest::Starts(prefix),
    )))
}

pub(super) fn ends_with(mut args: CallArgs) -> Built {
    let (text, suffix) = (args.bytes()?, args.quoted()?);
    Ok(CompiledTerm::Bool(BoolTerm::Bytes(
        text,
        BytesTest::Ends(suffix),
    )))
}

pub(super) fn len(mut args: CallArgs) -> Built {
    Ok(match args.term()? {
        CompiledTerm::Bytes(bytes) => CompiledTerm::Int(IntTerm::Len(Box::new(bytes))),
        count => count,
    })
}

pub(super) fn lower(args: CallArgs) -> Built {
    changed(args, TransformCall::Lower)
}

pub(super) fn upper(args: CallArgs) -> Built {
    changed(args, TransformCall::Upper)
}

pub(super) fn concat(args: CallArgs) -> Built {
    let args = args.into_terms();
    let is_list = |term: &CompiledTerm| matches!(term, CompiledTerm::List(..));
    if !args.iter().any(is_list) {
        return Ok(CompiledTerm::Bytes(BytesTerm::Concat(args)));
    }
    if let Some(at) = args.iter().position(|term| !is_list(term)) {
        return Err((at, "`concat` joins lists or single values, not both".into()));
    }
    let links = args.into_iter().filter_map(|term| match term {
        CompiledTerm::List(source, each) => Some((source, *each)),
        _ => None,
    });
    let item = Box::new(CompiledTerm::Bytes(BytesTerm::Item));
    Ok(CompiledTerm::List(
        StringSource::Chain(links.collect()),
        item,
    ))
}

pub(super) fn substring(mut args: CallArgs) -> Built {
    let (text, from, to) = (args.bytes()?, args.number()?, args.number().ok());
    Ok(change(text, TransformCall::Substring(from, to)))
}

pub(super) fn remove_bytes(mut args: CallArgs) -> Built {
    let (text, unwanted) = (args.bytes()?, args.quoted()?);
    Ok(change(text, TransformCall::RemoveBytes(unwanted)))
}

pub(super) fn regex_replace(mut args: CallArgs) -> Built {
    let (text, regex, with) = (args.bytes()?, args.term()?, args.quoted()?);
    match regex {
        CompiledTerm::Regex(regex) => replaced(text, ReplacePattern::Regex(regex), &with),
        _ => Err(super::unfit()),
    }
}

pub(super) fn wildcard_replace(mut args: CallArgs) -> Built {
    let (text, pattern, with) = (args.bytes()?, args.quoted()?, args.quoted()?);
    let ignore_case = match args.quoted().ok().as_deref() {
        None => true,
        Some(b"s") => false,
        Some(_) => return Err((3, "the option of `wildcard_replace` is `s`".into())),
    };
    if pattern.windows(2).any(|two| two == b"**") {
        return Err((1, "two stars in a row make `${1}` ambiguous".into()));
    }
    let pattern =
        WildcardPattern::new(&pattern, ignore_case).map_err(|reason| (1, reason.into()))?;
    replaced(text, ReplacePattern::Wildcard(pattern), &with)
}

fn replaced(text: BytesTerm, pattern: ReplacePattern, with: &[u8]) -> Built {
    let replace = ReplaceCall::new(pattern, with).map_err(|reason| (2, reason))?;
    Ok(change(text, TransformCall::Replace(Box::new(replace))))
}

pub(super) fn decode_base64(args: CallArgs) -> Built {
    changed(args, TransformCall::Base64)
}

pub(super) fn lookup_json_string(mut args: CallArgs) -> Built {
    let text = args.bytes()?;
    Ok(change(text, TransformCall::Json(path(args)?)))
}

pub(super) fn lookup_json_integer(mut args: CallArgs) -> Built {
    let text = Box::new(args.bytes()?);
    Ok(CompiledTerm::Int(IntTerm::Json(text, path(args)?)))
}

pub(super) fn jwt_claim(mut args: CallArgs) -> Built {
    let token = args.bytes()?;
    Ok(change(token, TransformCall::Claim(path(args)?)))
}

/// Converts the arguments after the first one to JSON steps.
fn path(args: CallArgs) -> Result<Box<[JsonStep]>, Fault> {
    let steps = args.into_terms().into_iter().zip(1..);
    let steps = steps.map(|(term, at)| match term {
        CompiledTerm::Bytes(BytesTerm::Literal(name)) => Ok(JsonStep::Name(name)),
        CompiledTerm::Int(IntTerm::Literal(place)) => match usize::try_from(place) {
            Ok(place) => Ok(JsonStep::At(place)),
            Err(_) => Err((at, "positions in a JSON text start at 0".into())),
        },
        _ => Err((at, "a step is a name or a position".into())),
    });
    steps.collect()
}

pub(super) fn url_decode(mut args: CallArgs) -> Built {
    let (text, options) = (args.bytes()?, args.quoted().unwrap_or_default());
    if options.iter().any(|option| !b"ru".contains(option)) {
        return Err((1, "the options of `url_decode` are `r` and `u`".into()));
    }
    let (recursive, unicode) = (options.contains(&b'r'), options.contains(&b'u'));
    Ok(change(
        text,
        TransformCall::UrlDecode { recursive, unicode },
    ))
}

pub(super) fn to_string(mut args: CallArgs) -> Built {
    Ok(CompiledTerm::Bytes(BytesTerm::Text(Box::new(args.term()?))))
}

pub(super) fn cidr(mut args: CallArgs) -> Built {
    let ip = args.ip()?;
    let (v4, v6) = (
        prefix(args.number()?, 1, 32)?,
        prefix(args.number()?, 2, 128)?,
    );
    Ok(CompiledTerm::Ip(ip.network(v4, v6)))
}

pub(super) fn cidr6(mut args: CallArgs) -> Built {
    let (ip, v6) = (args.ip()?, prefix(args.number()?, 1, 128)?);
    Ok(CompiledTerm::Ip(ip.network(32, v6)))
}

fn prefix(bits: i64, at: usize, max: u8) -> Result<u8, Fault> {
    let bits = u8::try_from(bits).ok().filter(|bits| *bits <= max);
    bits.ok_or_else(|| (at, format!("a prefix is from 0 to {max} bits long")))
}

pub(super) fn split(mut args: CallArgs) -> Built {
    let (text, separator) = (Box::new(args.bytes()?), args.quoted()?);
    let limit = args.number().map_or(Ok(MAX_PARTS), usize::try_from);
    let limit = limit.unwrap_or(0);
    if !(1..=MAX_PARTS).contains(&limit) {
        return Err((2, format!("`split` gives from 1 to {MAX_PARTS} parts")));
    }
    if separator.is_empty() {
        return Err((1, "the separator must not be empty".into()));
    }
    let parts = StringSource::Split {
        text,
        separator,
        limit,
    };
    Ok(CompiledTerm::List(
        parts,
        Box::new(CompiledTerm::Bytes(BytesTerm::Item)),
    ))
}

pub(super) fn join(mut args: CallArgs) -> Built {
    let ((source, each), separator) = (args.list()?, args.quoted()?);
    Ok(CompiledTerm::Bytes(BytesTerm::Join(
        source,
        Box::new(each),
        separator,
    )))
}

fn changed(mut args: CallArgs, transform: TransformCall) -> Built {
    Ok(change(args.bytes()?, transform))
}

fn change(text: BytesTerm, transform: TransformCall) -> CompiledTerm {
    CompiledTerm::Bytes(BytesTerm::Changed(transform, Box::new(text)))
}
