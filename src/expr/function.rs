//! THE table of functions: name, parameters, result, doc line, and how a call becomes a term.
//! A new function is one row and one builder.

use super::Type;
use super::term::{Bytes, BytesTest, Int, Ip, Source, Term, Test};
use super::transform::Transform;

/// A function of the rule language.
#[derive(Debug)]
pub struct FunctionSpec {
    /// Its name.
    pub name: &'static str,
    /// How a call is written, with the types.
    pub signature: &'static str,
    /// The type of its result.
    pub result: Type,
    /// What it gives, in one sentence.
    pub doc: &'static str,
    pub(super) params: &'static [Param],
    /// How many of the last parameters may be left out.
    pub(super) optional: usize,
    /// The last parameter may be repeated.
    pub(super) repeats: bool,
    pub(super) build: Option<Build>,
}

/// What a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Param {
    /// A string.
    Text,
    /// A string that is written in the rule.
    Quoted,
    /// An integer that is written in the rule.
    Number,
    /// An address.
    Address,
    /// A string, integer, address or boolean.
    Scalar,
    /// A string or a whole list.
    Measured,
    /// A test of each value of a list.
    Tests,
    /// A whole list of strings.
    Joined,
}

/// Makes the term of a call; the arguments fit the parameters. The error is the number of the
/// argument to blame and the reason.
pub(super) type Build = fn(Vec<Term>) -> Result<Term, (usize, String)>;
type Built = Result<Term, (usize, String)>;

/// As many parts as `split` may give.
const MAX_PARTS: usize = 128;

/// All functions, those that do not work yet included.
pub fn functions() -> &'static [FunctionSpec] {
    TABLE
}

/// The function called `name`.
pub(super) fn function(name: &str) -> Option<&'static FunctionSpec> {
    TABLE.iter().find(|spec| spec.name == name)
}

// === impl FunctionSpec ===

impl FunctionSpec {
    /// Whether expressions may call it already.
    pub fn works(&self) -> bool {
        self.build.is_some()
    }
}

const fn row(
    signature: &'static str,
    name: &'static str,
    params: &'static [Param],
    result: Type,
    build: Build,
    doc: &'static str,
) -> FunctionSpec {
    let build = Some(build);
    FunctionSpec {
        name,
        signature,
        result,
        doc,
        params,
        optional: 0,
        repeats: false,
        build,
    }
}

const fn optional(mut spec: FunctionSpec) -> FunctionSpec {
    spec.optional = 1;
    spec
}

const fn repeats(mut spec: FunctionSpec) -> FunctionSpec {
    spec.repeats = true;
    spec
}

const fn later(
    signature: &'static str,
    name: &'static str,
    result: Type,
    doc: &'static str,
) -> FunctionSpec {
    let params = &[];
    FunctionSpec {
        name,
        signature,
        result,
        doc,
        params,
        optional: 0,
        repeats: false,
        build: None,
    }
}

#[rustfmt::skip]
static TABLE: &[FunctionSpec] = &[
    row("any(test of list[*])", "any", &[Param::Tests], Type::Bool, any,
        "True if the test holds for at least one value of the list."),
    row("all(test of list[*])", "all", &[Param::Tests], Type::Bool, all,
        "True if the test holds for every value of the list; false if a named entry is missing."),
    row("starts_with(string, \"prefix\")", "starts_with", &[Param::Text, Param::Quoted], Type::Bool, starts_with,
        "True if the string starts with the prefix."),
    row("ends_with(string, \"suffix\")", "ends_with", &[Param::Text, Param::Quoted], Type::Bool, ends_with,
        "True if the string ends with the suffix."),
    row("len(string or list)", "len", &[Param::Measured], Type::Int, len,
        "The bytes of a string, or the values of a list."),
    row("lower(string)", "lower", &[Param::Text], Type::Bytes, lower,
        "The string with ASCII letters in lower case."),
    row("upper(string)", "upper", &[Param::Text], Type::Bytes, upper,
        "The string with ASCII letters in upper case."),
    repeats(row("concat(value, …)", "concat", &[Param::Scalar], Type::Bytes, concat,
        "All values as text, one after the other.")),
    optional(row("substring(string, start[, end])", "substring", &[Param::Text, Param::Number, Param::Number], Type::Bytes, substring,
        "The bytes from start to before end; negative counts from the end.")),
    row("remove_bytes(string, \"bytes\")", "remove_bytes", &[Param::Text, Param::Quoted], Type::Bytes, remove_bytes,
        "The string without any of the bytes."),
    optional(row("url_decode(string[, \"ru\"])", "url_decode", &[Param::Text, Param::Quoted], Type::Bytes, url_decode,
        "The string percent-decoded, `+` as a space; r undoes up to 16 layers, u reads %uXXXX too.")),
    row("to_string(value)", "to_string", &[Param::Scalar], Type::Bytes, to_string,
        "An integer, address or boolean as text."),
    row("cidr(address, ipv4_bits, ipv6_bits)", "cidr", &[Param::Address, Param::Number, Param::Number], Type::Ip, cidr,
        "The network address of the address."),
    row("cidr6(address, ipv6_bits)", "cidr6", &[Param::Address, Param::Number], Type::Ip, cidr6,
        "The network address of an IPv6 address; IPv4 stays as it is."),
    later("decode_base64(string)", "decode_base64", Type::Bytes, "The string decoded from Base64."),
    later("lookup_json_string(json, \"key\", …)", "lookup_json_string", Type::Bytes, "A string in a JSON text."),
    later("lookup_json_integer(json, \"key\", …)", "lookup_json_integer", Type::Int, "An integer in a JSON text."),
    later("regex_replace(string, \"regex\", \"with\")", "regex_replace", Type::Bytes, "The string with the first match replaced."),
    later("wildcard_replace(string, \"pattern\", \"with\")", "wildcard_replace", Type::Bytes, "The string rewritten by a wildcard pattern."),
    optional(row("split(string, \"separator\"[, limit])", "split", &[Param::Text, Param::Quoted, Param::Number], Type::Array, split,
        "The parts of the string between separators, at most 128; the last part holds the rest.")),
    row("join(list, \"separator\")", "join", &[Param::Joined, Param::Quoted], Type::Bytes, join,
        "The values of the list in one string, the separator between them."),
    later("jwt_claim(token, \"claim\")", "jwt_claim", Type::Bytes, "A claim of a JSON web token; read, not verified."),
];

fn any(args: Vec<Term>) -> Built {
    match one(args) {
        Some(Term::Many(source, test)) => Ok(Term::Bool(Test::Any(source, Box::new(test)))),
        _ => unfit(),
    }
}

fn all(args: Vec<Term>) -> Built {
    match one(args) {
        Some(Term::Many(source, test)) => Ok(Term::Bool(Test::All(source, Box::new(test)))),
        _ => unfit(),
    }
}

fn starts_with(args: Vec<Term>) -> Built {
    with_quoted(args, |text, quoted| {
        Term::Bool(Test::Bytes(text, BytesTest::Starts(quoted)))
    })
}

fn ends_with(args: Vec<Term>) -> Built {
    with_quoted(args, |text, quoted| {
        Term::Bool(Test::Bytes(text, BytesTest::Ends(quoted)))
    })
}

fn len(args: Vec<Term>) -> Built {
    match one(args) {
        Some(Term::Bytes(bytes)) => Ok(Term::Int(Int::Len(Box::new(bytes)))),
        Some(count @ Term::Int(_)) => Ok(count),
        _ => unfit(),
    }
}

fn lower(args: Vec<Term>) -> Built {
    changed(args, Transform::Lower)
}

fn upper(args: Vec<Term>) -> Built {
    changed(args, Transform::Upper)
}

fn concat(args: Vec<Term>) -> Built {
    Ok(Term::Bytes(Bytes::Concat(args)))
}

fn substring(args: Vec<Term>) -> Built {
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

fn remove_bytes(args: Vec<Term>) -> Built {
    with_quoted(args, |text, quoted| {
        Term::Bytes(Bytes::Changed(
            Transform::RemoveBytes(quoted),
            Box::new(text),
        ))
    })
}

fn url_decode(args: Vec<Term>) -> Built {
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

fn to_string(args: Vec<Term>) -> Built {
    one(args).map_or_else(unfit, |term| Ok(Term::Bytes(Bytes::Text(Box::new(term)))))
}

fn cidr(args: Vec<Term>) -> Built {
    let mut args = args.into_iter();
    let (ip, v4, v6) = (args.next(), args.next(), args.next());
    network(ip, prefix(v4, 1, 32)?, prefix(v6, 2, 128)?)
}

fn cidr6(args: Vec<Term>) -> Built {
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

fn split(args: Vec<Term>) -> Built {
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

fn join(args: Vec<Term>) -> Built {
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
