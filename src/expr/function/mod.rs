//! THE table of functions: name, parameters, doc line, and the builder of a call's term. A new
//! function is one row here and one builder in `build.rs`.

mod build;

use super::term::{BytesTerm, CompiledTerm, EachTerm, IntTerm, IpTerm, StringSource};

/// A function of the rule language.
#[derive(Debug)]
pub struct FunctionSpec {
    /// Its name.
    pub name: &'static str,
    /// The syntax of a call, with types.
    pub signature: &'static str,
    /// A one-line description of the result.
    pub doc: &'static str,
    pub(super) params: &'static [ParamType],
    /// The number of trailing parameters that are optional.
    pub(super) optional: usize,
    /// Whether the last parameter can be repeated.
    pub(super) repeats: bool,
    pub(super) build: Build,
}

// === impl FunctionSpec ===

impl FunctionSpec {
    /// Returns help with the syntax of a call.
    pub(super) fn usage(&self) -> String {
        let signature = self.signature;
        if self.name == "jwt_claim" {
            // Its first argument is rarely guessed.
            let example = "jwt_claim(http.request.headers[\"authorization\"][0], \"sub\")";
            format!("write `{signature}`, for example `{example}`")
        } else {
            format!("write `{signature}`")
        }
    }
}

/// What a parameter accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParamType {
    /// A string.
    Text,
    /// A string literal.
    Quoted,
    /// A regex literal.
    Regex,
    /// An integer literal.
    Number,
    /// A literal name or array index in a JSON text.
    Step,
    /// An address.
    Address,
    /// A string, integer, address or boolean.
    Scalar,
    /// A string, integer, address, boolean or a whole list.
    Part,
    /// A string or a whole list.
    Measured,
    /// A test of each value of a list.
    Tests,
    /// A whole list of strings.
    Joined,
    /// A whole map.
    Map,
    /// A whole map or list.
    Values,
}

/// Builds the term of a call; the arguments match the parameters.
pub(super) type Build = fn(CallArgs) -> Built;
type Built = Result<CompiledTerm, Fault>;
/// The number of the invalid argument, and the reason.
type Fault = (usize, String);

/// The arguments of a call that are not consumed yet.
pub(super) struct CallArgs(std::vec::IntoIter<CompiledTerm>);

/// All functions.
pub fn functions() -> &'static [FunctionSpec] {
    TABLE
}

/// The nearest alternative to a Cloudflare function that the gateway does not have. `None` if unknown.
pub(super) fn nearest_to_missing(name: &str) -> Option<&'static str> {
    let row = MISSING.iter().find(|(missing, _)| *missing == name);
    row.map(|(_, nearest)| *nearest)
}

/// The function with this name. `None` if there is none.
pub(super) fn function(name: &str) -> Option<&'static FunctionSpec> {
    TABLE.iter().find(|spec| spec.name == name)
}

// === impl CallArgs ===

/// Defines a method per kind of argument: its name, its type, the term and what is taken from it.
macro_rules! takes {
    ($($name:ident: $type:ty, $term:pat => $taken:expr;)*) => {$(
        fn $name(&mut self) -> Result<$type, Fault> {
            match self.term()? {
                $term => Ok($taken),
                _ => Err(unfit()),
            }
        }
    )*};
}

impl CallArgs {
    pub(super) fn new(terms: Vec<CompiledTerm>) -> CallArgs {
        CallArgs(terms.into_iter())
    }

    fn into_terms(self) -> Vec<CompiledTerm> {
        self.0.collect()
    }

    fn term(&mut self) -> Result<CompiledTerm, Fault> {
        self.0.next().ok_or_else(unfit)
    }

    takes! {
        bytes: BytesTerm, CompiledTerm::Bytes(bytes) => bytes;
        quoted: Box<[u8]>, CompiledTerm::Bytes(BytesTerm::Literal(text)) => text;
        number: i64, CompiledTerm::Int(IntTerm::Literal(number)) => number;
        ip: IpTerm, CompiledTerm::Ip(ip) => ip;
        list: (StringSource, CompiledTerm), CompiledTerm::List(source, each) => (source, *each);
        tests: (StringSource, EachTerm), CompiledTerm::Many(source, each) => (source, each);
    }
}

/// Never happens, because the checker has compared arguments and parameters; the type system requires it.
fn unfit() -> Fault {
    (0, "the arguments do not match".into())
}

const fn row(
    signature: &'static str,
    name: &'static str,
    params: &'static [ParamType],
    build: Build,
    doc: &'static str,
) -> FunctionSpec {
    FunctionSpec {
        name,
        signature,
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

use ParamType::{
    Address, Joined, Map, Measured, Number, Part, Quoted, Regex, Scalar, Step, Tests, Text, Values,
};

#[rustfmt::skip] // a row a line
static TABLE: &[FunctionSpec] = &[
    row("any(test of list[*])", "any", &[Tests], build::any,
        "True if the test holds for at least one value of the list."),
    row("all(test of list[*])", "all", &[Tests], build::all,
        "True if the test holds for every value of the list; false if a named entry is missing."),
    row("has_key(map, \"name\")", "has_key", &[Map, Quoted], build::has_key,
        "True if the map has an entry of this name."),
    row("has_value(map or list, \"value\")", "has_value", &[Values, Quoted], build::has_value,
        "True if one of the values equals this one."),
    row("starts_with(string, \"prefix\")", "starts_with", &[Text, Quoted], build::starts_with,
        "True if the string starts with the prefix."),
    row("ends_with(string, \"suffix\")", "ends_with", &[Text, Quoted], build::ends_with,
        "True if the string ends with the suffix."),
    row("len(string or list)", "len", &[Measured], build::len,
        "The number of bytes in a string, or of values in a list."),
    row("lower(string)", "lower", &[Text], build::lower,
        "The string with ASCII letters in lower case."),
    row("upper(string)", "upper", &[Text], build::upper,
        "The string with ASCII letters in upper case."),
    repeats(row("concat(value, …)", "concat", &[Part], build::concat,
        "All values joined as text, without missing ones; of lists, one list.")),
    optional(row("substring(string, start[, end])", "substring", &[Text, Number, Number], build::substring,
        "The bytes from start to before end; negative counts from the end.")),
    row("remove_bytes(string, \"bytes\")", "remove_bytes", &[Text, Quoted], build::remove_bytes,
        "The string without any of the bytes."),
    row("regex_replace(string, \"regex\", \"with\")", "regex_replace", &[Text, Regex, Quoted], build::regex_replace,
        "The string with the first match replaced; `${1}` is the first group, `$$` a dollar."),
    optional(row("wildcard_replace(string, \"pattern\", \"with\"[, \"s\"])", "wildcard_replace", &[Text, Quoted, Quoted, Quoted], build::wildcard_replace,
        "The replacement if the whole string matches the pattern, else the string; `${1}` is what \
         the first `*` matched; `s` makes it case-sensitive.")),
    optional(row("url_decode(string[, \"ru\"])", "url_decode", &[Text, Quoted], build::url_decode,
        "The string percent-decoded, `+` as a space; `r` decodes up to 16 times, `u` also decodes \
         %uXXXX.")),
    row("decode_base64(string)", "decode_base64", &[Text], build::decode_base64,
        "The string decoded from Base64, standard or URL-safe, padded or not; missing if it is not \
         Base64."),
    repeats(row("lookup_json_string(string, \"name\" or position, …)", "lookup_json_string", &[Text, Step], build::lookup_json_string,
        "A string in a JSON text, by names and positions from 0; missing if there is none.")),
    repeats(row("lookup_json_integer(string, \"name\" or position, …)", "lookup_json_integer", &[Text, Step], build::lookup_json_integer,
        "An integer in a JSON text; `1.0` is not one.")),
    repeats(row("jwt_claim(string, \"claim\", …)", "jwt_claim", &[Text, Step], build::jwt_claim,
        "A claim of a JSON Web Token of up to 8 KiB, also after `Bearer `; the signature is not \
         verified.")),
    row("to_string(value)", "to_string", &[Scalar], build::to_string,
        "An integer, address or boolean as text."),
    row("cidr(address, ipv4_bits, ipv6_bits)", "cidr", &[Address, Number, Number], build::cidr,
        "The network address of the address."),
    row("cidr6(address, ipv6_bits)", "cidr6", &[Address, Number], build::cidr6,
        "The network address of an IPv6 address; an IPv4 address is unchanged."),
    optional(row("split(string, \"separator\"[, limit])", "split", &[Text, Quoted, Number], build::split,
        "The parts of the string between separators, at most 128; the last part holds the rest.")),
    row("join(list, \"separator\")", "join", &[Joined, Quoted], build::join,
        "The values of the list in one string, with the separator between them."),
];

/// Cloudflare functions that do not exist here, with the nearest alternative.
#[rustfmt::skip] // a row a line
const MISSING: &[(&str, &str)] = &[
    ("bit_slice", "a test of `ip.src`: the gateway sees requests, not packets"),
    ("encode_base64", "compare `decode_base64(…)` of the other side"),
    ("is_timed_hmac_valid_v0", "`jwt_claim(…)` reads a token, but let the origin verify it"),
    ("remove_query_args", "`http.request.uri.args[\"name\"]`, or `regex_replace` of `http.request.uri.query`"),
    ("sha256", "compare the value itself"),
    ("uuidv4", "`http.request.id`"),
];
