//! How the calls of each function become terms. The checker has compared the arguments with the
//! parameters; what is left to refuse is in their values.

use super::Built;
use crate::expr::json::Step;
use crate::expr::replace::{Pattern, Replace};
use crate::expr::term::{Bytes, BytesTest, Each, Int, Ip, Source, Term, Test};
use crate::expr::transform::Transform;
use crate::expr::wildcard::Wildcard;

/// A text, and the way to a value in it.
type Path = (Vec<Term>, Box<[Step]>);

/// As many parts as `split` may give.
const MAX_PARTS: usize = 128;

pub(super) fn any(args: Vec<Term>) -> Built {
    match one(args) {
        Some(Term::Many(source, each)) => Ok(Term::Bool(Test::Any(source, Box::new(each)))),
        _ => unfit(),
    }
}

pub(super) fn all(args: Vec<Term>) -> Built {
    match one(args) {
        Some(Term::Many(source, each)) => Ok(Term::Bool(Test::All(source, Box::new(each)))),
        _ => unfit(),
    }
}

/// The checker has made the map and the name into the list of the entry's values.
pub(super) fn has_key(args: Vec<Term>) -> Built {
    match one(args) {
        Some(Term::List(entry, _)) => {
            let there = Each::of(Test::Const(true));
            Ok(Term::Bool(Test::Any(entry, there)))
        }
        _ => unfit(),
    }
}

pub(super) fn has_value(args: Vec<Term>) -> Built {
    let mut args = args.into_iter();
    match (args.next(), args.next()) {
        (Some(Term::List(source, each)), Some(Term::Bytes(Bytes::Literal(value)))) => match *each {
            Term::Bytes(each) => {
                let equal = Test::Bytes(each, BytesTest::Eq(value));
                Ok(Term::Bool(Test::Any(source, Each::of(equal))))
            }
            _ => Err((0, "`has_value` looks for a string among strings".into())),
        },
        _ => unfit(),
    }
}

pub(super) fn starts_with(args: Vec<Term>) -> Built {
    with_quoted(args, |text, quoted| {
        Term::Bool(Test::Bytes(text, BytesTest::Starts(quoted)))
    })
}

pub(super) fn ends_with(args: Vec<Term>) -> Built {
    with_quoted(args, |text, quoted| {
        Term::Bool(Test::Bytes(text, BytesTest::Ends(quoted)))
    })
}

pub(super) fn len(args: Vec<Term>) -> Built {
    match one(args) {
        Some(Term::Bytes(bytes)) => Ok(Term::Int(Int::Len(Box::new(bytes)))),
        Some(count @ Term::Int(_)) => Ok(count),
        _ => unfit(),
    }
}

pub(super) fn lower(args: Vec<Term>) -> Built {
    changed(args, Transform::Lower)
}

pub(super) fn upper(args: Vec<Term>) -> Built {
    changed(args, Transform::Upper)
}

pub(super) fn concat(args: Vec<Term>) -> Built {
    let is_list = |term: &Term| matches!(term, Term::List(..));
    let lists = args.iter().filter(|term| is_list(term)).count();
    if lists == 0 {
        return Ok(Term::Bytes(Bytes::Concat(args)));
    }
    if let Some(at) = args.iter().position(|term| !is_list(term)) {
        return Err((at, "`concat` joins lists or single values, not both".into()));
    }
    let links = args.into_iter().filter_map(|term| match term {
        Term::List(source, each) => Some((source, *each)),
        _ => None,
    });
    let item = Box::new(Term::Bytes(Bytes::Item));
    Ok(Term::List(Source::Chain(links.collect()), item))
}

pub(super) fn substring(args: Vec<Term>) -> Built {
    let mut args = args.into_iter();
    match (args.next(), args.next(), args.next()) {
        (Some(text), Some(Term::Int(Int::Literal(from))), to) => {
            let to = match to {
                Some(Term::Int(Int::Literal(to))) => Some(to),
                _ => None,
            };
            changed(vec![text], Transform::Substring(from, to))
        }
        _ => unfit(),
    }
}

pub(super) fn remove_bytes(args: Vec<Term>) -> Built {
    with_quoted(args, |text, quoted| {
        Term::Bytes(Bytes::Changed(
            Transform::RemoveBytes(quoted),
            Box::new(text),
        ))
    })
}

pub(super) fn regex_replace(args: Vec<Term>) -> Built {
    let mut args = args.into_iter();
    match (args.next(), args.next(), args.next()) {
        (Some(text), Some(Term::Regex(regex)), Some(Term::Bytes(Bytes::Literal(with)))) => {
            replaced(text, Pattern::Regex(regex), &with)
        }
        _ => unfit(),
    }
}

pub(super) fn wildcard_replace(args: Vec<Term>) -> Built {
    let mut args = args.into_iter();
    let text = args.next();
    let mut quoted = args.map(|term| match term {
        Term::Bytes(Bytes::Literal(text)) => text,
        _ => Box::default(),
    });
    let (pattern, with, flags) = (quoted.next(), quoted.next(), quoted.next());
    let (Some(text), Some(pattern), Some(with)) = (text, pattern, with) else {
        return unfit();
    };
    let ignore_case = match flags.as_deref() {
        None => true,
        Some(b"s") => false,
        Some(_) => return Err((3, "the option of `wildcard_replace` is `s`".into())),
    };
    if pattern.windows(2).any(|two| two == b"**") {
        return Err((1, "two stars in a row: `${1}` could be either".into()));
    }
    let pattern = Wildcard::new(&pattern, ignore_case).map_err(|reason| (1, reason.into()))?;
    replaced(text, Pattern::Wildcard(pattern), &with)
}

fn replaced(text: Term, pattern: Pattern, with: &[u8]) -> Built {
    let replace = Replace::new(pattern, with).map_err(|reason| (2, reason))?;
    changed(vec![text], Transform::Replace(Box::new(replace)))
}

pub(super) fn decode_base64(args: Vec<Term>) -> Built {
    changed(args, Transform::Base64)
}

pub(super) fn lookup_json_string(args: Vec<Term>) -> Built {
    let (text, path) = path(args)?;
    changed(text, Transform::Json(path))
}

pub(super) fn lookup_json_integer(args: Vec<Term>) -> Built {
    let (text, path) = path(args)?;
    match one(text) {
        Some(Term::Bytes(text)) => Ok(Term::Int(Int::Json(Box::new(text), path))),
        _ => unfit(),
    }
}

pub(super) fn jwt_claim(args: Vec<Term>) -> Built {
    let (token, path) = path(args)?;
    changed(token, Transform::Claim(path))
}

/// The first argument, and the others as steps.
fn path(args: Vec<Term>) -> Result<Path, (usize, String)> {
    let mut args = args.into_iter();
    let text = args.next().into_iter().collect();
    let steps = args.enumerate().map(|(at, term)| match term {
        Term::Bytes(Bytes::Literal(name)) => Ok(Step::Name(name)),
        Term::Int(Int::Literal(place)) => match usize::try_from(place) {
            Ok(place) => Ok(Step::At(place)),
            Err(_) => Err((at + 1, "places in a JSON text start at 0".into())),
        },
        _ => Err((at + 1, "a step is a name or a place".into())),
    });
    Ok((text, steps.collect::<Result<_, _>>()?))
}

pub(super) fn url_decode(args: Vec<Term>) -> Built {
    let mut args = args.into_iter();
    let (text, options) = (args.next(), args.next());
    let options = match options {
        Some(Term::Bytes(Bytes::Literal(options))) => options,
        _ => Box::default(),
    };
    if options.iter().any(|option| !b"ru".contains(option)) {
        return Err((1, "the options of `url_decode` are `r` and `u`".into()));
    }
    let (recursive, unicode) = (options.contains(&b'r'), options.contains(&b'u'));
    changed(
        text.into_iter().collect(),
        Transform::UrlDecode { recursive, unicode },
    )
}

pub(super) fn to_string(args: Vec<Term>) -> Built {
    one(args).map_or_else(unfit, |term| Ok(Term::Bytes(Bytes::Text(Box::new(term)))))
}

pub(super) fn cidr(args: Vec<Term>) -> Built {
    let mut args = args.into_iter();
    let (ip, v4, v6) = (args.next(), args.next(), args.next());
    network(ip, prefix(v4, 1, 32)?, prefix(v6, 2, 128)?)
}

pub(super) fn cidr6(args: Vec<Term>) -> Built {
    let mut args = args.into_iter();
    let (ip, v6) = (args.next(), args.next());
    network(ip, 32, prefix(v6, 1, 128)?)
}

fn network(ip: Option<Term>, v4: u8, v6: u8) -> Built {
    match ip {
        Some(Term::Ip(ip)) => Ok(Term::Ip(Ip::Network(Box::new(ip), v4, v6))),
        _ => unfit(),
    }
}

fn prefix(arg: Option<Term>, at: usize, max: u8) -> Result<u8, (usize, String)> {
    let bits = match arg {
        Some(Term::Int(Int::Literal(bits))) => u8::try_from(bits).ok(),
        _ => None,
    };
    let bits = bits.filter(|bits| *bits <= max);
    bits.ok_or_else(|| (at, format!("a prefix is from 0 to {max} bits long")))
}

pub(super) fn split(args: Vec<Term>) -> Built {
    let mut args = args.into_iter();
    let (text, separator, limit) = (args.next(), args.next(), args.next());
    let limit = match limit {
        Some(Term::Int(Int::Literal(limit))) => usize::try_from(limit).unwrap_or(0),
        _ => MAX_PARTS,
    };
    if !(1..=MAX_PARTS).contains(&limit) {
        return Err((2, format!("`split` gives from 1 to {MAX_PARTS} parts")));
    }
    match (text, separator) {
        (_, Some(Term::Bytes(Bytes::Literal(separator)))) if separator.is_empty() => {
            Err((1, "the separator must not be empty".into()))
        }
        (Some(Term::Bytes(text)), Some(Term::Bytes(Bytes::Literal(separator)))) => {
            let text = Box::new(text);
            let parts = Source::Split {
                text,
                separator,
                limit,
            };
            Ok(Term::List(parts, Box::new(Term::Bytes(Bytes::Item))))
        }
        _ => unfit(),
    }
}

pub(super) fn join(args: Vec<Term>) -> Built {
    let mut args = args.into_iter();
    match (args.next(), args.next()) {
        (Some(Term::List(source, each)), Some(Term::Bytes(Bytes::Literal(separator)))) => {
            Ok(Term::Bytes(Bytes::Join(source, each, separator)))
        }
        _ => unfit(),
    }
}

fn changed(args: Vec<Term>, change: Transform) -> Built {
    match one(args) {
        Some(Term::Bytes(bytes)) => Ok(Term::Bytes(Bytes::Changed(change, Box::new(bytes)))),
        _ => unfit(),
    }
}

fn with_quoted(args: Vec<Term>, make: fn(Bytes, Box<[u8]>) -> Term) -> Built {
    let mut args = args.into_iter();
    match (args.next(), args.next()) {
        (Some(Term::Bytes(text)), Some(Term::Bytes(Bytes::Literal(quoted)))) => {
            Ok(make(text, quoted))
        }
        _ => unfit(),
    }
}

fn one(args: Vec<Term>) -> Option<Term> {
    args.into_iter().next()
}

/// The checker has compared arguments and parameters; this is for the compiler's sake.
fn unfit() -> Built {
    Err((0, "the arguments do not fit".into()))
}
