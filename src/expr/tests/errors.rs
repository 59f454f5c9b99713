//! Mistakes: the source, the text under the marker, the message.

use super::super::{ExprEnv, ExprError, predicate, scalar};
use super::{Small, lists, with_env};

#[rustfmt::skip]
const PREDICATES: &[(&str, &str, &str)] = &[
    // Names.
    (r#"http.request.uri.pth eq "/""#, "http.request.uri.pth", "unknown field `http.request.uri.pth`; did you mean `http.request.uri.path`?"),
    (r#"country eq "CN""#, "country", "unknown field `country`; did you mean `ip.src.country`?"),
    (r#"zzz eq "/""#, "zzz", "unknown field `zzz`"),
    ("cf.threat_score gt 5", "cf.threat_score", "`cf.threat_score` is known only to Cloudflare; use `ip.src.asnum`"),
    (r#"lowr(http.host) eq "x""#, "lowr", "unknown function `lowr`; did you mean `lower`?"),
    (r#"frobnicate(http.host) eq "x""#, "frobnicate", "unknown function `frobnicate`"),
    (r#"lower eq "x""#, "lower", "`lower` is a function; write `lower(…)`"),
    (r#"http.host(1) eq "x""#, "http.host", "`http.host` is a field, not a function"),
    (r#"split(http.host, "", 2)[0] eq "x""#, "\"\"", "the separator must not be empty"),
    (r#"split(http.host, ".", 0)[0] eq "x""#, "0", "`split` gives from 1 to 128 parts"),
    (r#"split(http.host, ".", 2) eq "x""#, r#"split(http.host, ".", 2)"#, "`split(http.host, \".\", 2)` is a list"),
    (r#"any(split(http.request.headers["x"][*], ",")[*] eq "x")"#, r#"split(http.request.headers["x"][*], ",")"#, "`split` of many values would be a list of lists"),
    (r#"join(http.host, ",") eq "x""#, "http.host", "`join` takes a list here; `http.host` is a string"),
    ("sha256(http.host) eq \"x\"", "sha256", "Cloudflare's `sha256` does not exist in lockgate; nearest: compare the value itself"),
    ("ip.src in $cf.vpn", "$cf.vpn", "only Cloudflare has the list `$cf.vpn`"),
    ("ip.src in $offce", "$offce", "unknown list `$offce`; did you mean `$office`?"),
    ("ip.src in $zzzzzzzzzz", "$zzzzzzzzzz", "unknown list `$zzzzzzzzzz`"),
    (r#"starts_with(http.host "/x")"#, "\"/x\"", "a comma is missing before this"),
    // Types.
    (r#"ip.src.asnum eq "1""#, "\"1\"", "`ip.src.asnum` is an integer; `\"1\"` is a string"),
    ("http.host eq 1", "1", "`http.host` is a string; `1` is an integer"),
    ("http.host in {\"a\" 5}", "5", "`http.host` is a string; `5` is an integer"),
    ("ip.src in {1.2.3.4 7}", "7", "`ip.src` is an address; `7` is an integer"),
    ("ip.src.asnum in {1 ::1}", "::1", "`ip.src.asnum` is an integer; `::1` is an address"),
    ("ip.src eq 10.0.0.0/8", "10.0.0.0/8", "`10.0.0.0/8` is more than one value"),
    ("ip.src.asnum eq 1..5", "1..5", "`1..5` is more than one value"),
    ("ip.src lt 10.0.0.1", "lt", "addresses have no order"),
    (r#"ip.src contains "10.""#, "contains", "`contains` works on strings; `ip.src` is an address"),
    (r#"ip.src.asnum ~ "1""#, "~", "`~` works on strings; `ip.src.asnum` is an integer"),
    (r#"http.host & 1"#, "&", "`&` works on integers; `http.host` is a string"),
    ("ip.src.asnum in $office", "$office", "`ip.src.asnum` is an integer; `$office` holds `203.0.113.0/24` (list:1) and 1 more that does not fit"),
    ("http.host in $office", "$office", "`http.host` is a string; `$office` holds `203.0.113.0/24` (list:1)"),
    ("ip.src in $networks", "$networks", "`ip.src` is an address; `$networks` holds `64500` (list:1) and 1 more that does not fit"),
    ("ip.src.asnum in $agents", "$agents", "`ip.src.asnum` is an integer; `$agents` holds `curl` (list:1) and 2 more that do not fit"),
    ("http.host", "http.host", "`http.host` is a string, not a test"),
    ("ssl and ip.src.asnum", "ip.src.asnum", "`ip.src.asnum` is an integer, not a test"),
    ("ssl eq 1", "1", "`ssl` is a boolean; `1` is an integer"),
    ("ssl gt true", "gt", "`ssl` is a boolean and needs no comparison"),
    (r#"starts_with(http.host, "x") eq false"#, "eq", "a test is negated with `not`"),
    (r#""x" eq "x""#, "\"x\"", "the left side must be a field or a function"),
    ("1.2.3.4 eq 1.2.3.4", "1.2.3.4", "`1.2.3.4` is allowed only on the right side"),
    ("http.host eq http.referer", "http.referer", "the right side must be a value, not the name `http.referer`"),
    // Impossible comparisons.
    (r#"lower(http.host) eq "ABC""#, "\"ABC\"", "`lower(http.host)` has no upper-case letters, but this value has"),
    (r#"upper(http.host) contains "abc""#, "\"abc\"", "`upper(http.host)` has no lower-case letters, but this value has"),
    ("len(http.host) lt -1", "-1", "a length is never negative"),
    // Calls.
    ("lower() eq \"x\"", "lower()", "`lower` takes 1 argument, not 0"),
    (r#"starts_with(http.host)"#, "starts_with(http.host)", "`starts_with` takes 2 arguments, not 1"),
    ("substring(http.host) eq \"x\"", "substring(http.host)", "`substring` takes 2 or 3 arguments, not 1"),
    ("concat() eq \"x\"", "concat()", "`concat` takes 1 argument or more, not 0"),
    ("lower(ip.src) eq \"x\"", "ip.src", "`lower` takes a string here; `ip.src` is an address"),
    ("starts_with(http.host, http.referer)", "http.referer", "`starts_with` takes a string in quotes here; `http.referer` is not a literal"),
    ("cidr(ip.src, 33, 64) eq 1.2.3.4", "33", "a prefix is from 0 to 32 bits long"),
    ("cidr(http.host, 24, 64) eq 1.2.3.4", "http.host", "`cidr` takes an address here; `http.host` is a string"),
    (r#"url_decode(http.host, "z") eq "x""#, "\"z\"", "the options of `url_decode` are `r` and `u`"),
    ("any(ssl)", "ssl", "`any` needs a test of many values, with `[*]`"),
    (r#"any(http.host eq "x")"#, r#"http.host eq "x""#, "`any` needs a test of many values, with `[*]`"),
    (r#"any(http.request.headers["x"][*])"#, r#"http.request.headers["x"][*]"#, "`http.request.headers[\"x\"][*]` is not a test"),
    (r#"concat(http.host, http.request.headers["x"][*]) eq "x""#, r#"http.request.headers["x"][*]"#, "`[*]` is allowed only in the first argument"),
    // Maps and lists.
    (r#"http.request.headers["x"] eq "y""#, r#"http.request.headers["x"]"#, "`http.request.headers[\"x\"]` is a list"),
    (r#"lower(http.request.headers["x"]) eq "y""#, r#"http.request.headers["x"]"#, "`http.request.headers[\"x\"]` is a list"),
    (r#"http.request.headers["x"][*] eq "y""#, r#"http.request.headers["x"][*] eq "y""#, "this tests many values"),
    (r#"http.request.headers eq "y""#, "http.request.headers", "`http.request.headers` is a map"),
    (r#"http.request.headers[0] eq "y""#, "[0]", "`http.request.headers` is a map"),
    (r#"http.request.headers.names["x"] eq "y""#, "[\"x\"]", "`http.request.headers.names` is a list and has no names"),
    (r#"http.host[0] eq "y""#, "[0]", "`http.host` is a string and has no parts"),
    (r#"http.request.headers[1..2] eq "y""#, "1..2", "this cannot be an index"),
    // Literals.
    (r#"http.host eq "abc"#, "\"abc", "this string is never closed"),
    (r##"http.host eq r#"abc""##, "r#\"abc\"", "this string is never closed"),
    (r#"http.host eq "a\nb""#, "\\n", "unknown escape `\\n`"),
    (r#"http.host eq "a\xg1""#, "\\x", "unknown escape `\\x`"),
    (r#"http.host eq "\777""#, "\\777", "unknown escape `\\777`"),
    ("http.host eq 'x'", "'x'", "strings need double quotes"),
    ("http.host eq a-b", "a-b", "`a-b` is not a name"),
    ("ip.src in {10.0.0.0/33}", "10.0.0.0/33", "`10.0.0.0/33` is not an address block"),
    ("ip.src eq 10.0.0", "10.0.0", "`10.0.0` is not an address"),
    ("ip.src in {10.0.0.9..10.0.0.1}", "10.0.0.9..10.0.0.1", "the range `10.0.0.9..10.0.0.1` is empty"),
    ("ip.src in {10.0.0.9..::1}", "10.0.0.9..::1", "the range `10.0.0.9..::1` mixes IPv4 and IPv6"),
    ("ip.src.asnum in {5..1}", "5..1", "the range `5..1` is empty"),
    ("ip.src.asnum eq 12x", "12x", "`12x` is not an integer"),
    ("ip.src.asnum eq 010", "010", "`010` starts with a zero"),
    ("ip.src.asnum eq 99999999999999999999", "99999999999999999999", "`99999999999999999999` is too big"),
    (r#"http.host matches "a(b""#, "(", "invalid regex: unclosed group"),
    (r#"http.host matches "é[z-a]""#, "z-a", "invalid regex: invalid character class range, the start must be <= the end"),
    (r#"http.host matches "a{1000}{1000}""#, "\"a{1000}{1000}\"", "this regex is too large: it compiles to more than 1 MiB"),
    (r##"http.host wildcard r"a\b""##, "r\"a\\b\"", "in a wildcard, a backslash must be followed by `*` or `\\`"),
    // Grammar.
    ("", "", "the expression is empty"),
    ("   ", "   ", "the expression is empty"),
    ("(ssl", "(", "this parenthesis is never closed"),
    ("ssl)", ")", "this parenthesis was never opened"),
    ("lower(http.host", "(", "this parenthesis is never closed"),
    ("http.request.headers[\"x\"", "[", "this bracket is never closed"),
    ("ip.src.asnum in {1 2", "{", "this set is never closed"),
    ("ip.src.asnum in {}", "{}", "this set is empty"),
    ("ip.src.asnum in {1, 2}", ",", "the values of a set are separated by spaces"),
    ("ip.src.asnum in {1 ssl}", "ssl", "a set can contain only values"),
    ("ip.src.asnum in 5", "5", "`in` needs a set or a list"),
    ("ip.src.asnum eq {5}", "{5}", "a set is compared with `in`"),
    ("ip.src eq $office", "$office", "a list is compared with `in`"),
    ("ssl and", "and", "a field or a function is missing after this"),
    ("and ssl", "and", "a field or a function is missing before `and`"),
    ("http.host eq", "eq", "a value is missing after the operator"),
    ("http.host eq and ssl", "and", "a value is missing after the operator"),
    ("http.host EQ \"x\"", "EQ", "unknown operator `EQ`; did you mean `eq`?"),
    ("http.host equals \"x\"", "equals", "unknown operator `equals`; did you mean `eq`?"),
    ("http.host like \"x%\"", "like", "unknown operator `like`; did you mean `wildcard`?"),
    ("http.host frobs \"x\"", "frobs", "unknown operator `frobs`"),
    ("http.host not in {\"x\"}", "not", "`not` goes before the whole test"),
    ("(http.host not contains \"x\")", "not", "`not` goes before the whole test"),
    ("http.host in (\"x\", \"y\")", "(", "`in` needs a set or a list"),
    ("ip.src in 10.0.0.0/8", "10.0.0.0/8", "`in` needs a set or a list"),
    ("http.host ~* \"x\"", "*", "`~*` is not an operator"),
    ("http.request.uri.path eq /login", "/login", "strings need double quotes: write `\"/login\"`"),
    ("http.host.startsWith(\"x\")", "http.host.startsWith", "unknown function `http.host.startsWith`"),
    ("http.host strict eq \"x\"", "strict", "`strict` is allowed only before `wildcard`"),
    ("http.host = \"x\"", "=", "`=` is not an operator"),
    ("ssl | ssl", "|", "`|` is not an operator"),
    ("ssl \"x\"", "\"x\"", "the expression should end here"),
    ("(ssl) eq true", "eq", "the expression should end here"),
    ("ssl % ssl", "%", "`%` is not an operator"),
    ("$office", "$office", "a set or a list is allowed only after `in`"),
    ("ip.src in $", "$", "`$` needs the name of a list"),
];

#[rustfmt::skip]
const SCALARS: &[(&str, &str, &str)] = &[
    ("http.request.headers", "http.request.headers", "`http.request.headers` is a map"),
    ("http.request.headers.names", "http.request.headers.names", "`http.request.headers.names` is a list"),
    (r#"http.request.headers["x"][*]"#, r#"http.request.headers["x"][*]"#, "`http.request.headers[\"x\"][*]` has many values"),
    (r#""x""#, "\"x\"", "this reads no field, so it is the same for every request"),
    (r#"http.host eq "x""#, "eq", "expected a value, not a test"),
    ("ip.scr", "ip.scr", "unknown field `ip.scr`; did you mean `ip.src`?"),
];

fn shown<'a>(source: &'a str, error: &'a ExprError) -> (&'a str, &'a str) {
    (source.get(error.span.clone()).unwrap(), &error.message)
}

#[test]
fn errors_have_a_span_and_a_message() {
    with_env(|env| {
        for (source, text, message) in PREDICATES {
            let errors = predicate(source, env).unwrap_err();
            assert_eq!(shown(source, &errors[0]), (*text, *message), "{source}");
            assert_eq!(errors.len(), 1, "{source}: {errors:?}");
        }
        for (source, text, message) in SCALARS {
            let errors = scalar(source, env).unwrap_err();
            assert_eq!(shown(source, &errors[0]), (*text, *message), "{source}");
        }
    });
}

#[test]
fn a_response_field_is_refused_where_there_is_no_response() {
    let lists = lists();
    let env = ExprEnv {
        scheme: &Small,
        lists: &lists,
        allow_response: false,
    };
    let source = "ssl and http.response.code eq 401";
    let errors = predicate(source, &env).unwrap_err();
    let message = "`http.response.code` is known only in the response phase; use it in `count`";
    assert_eq!(shown(source, &errors[0]), ("http.response.code", message));
    assert_eq!(
        scalar("http.response.code", &env).unwrap_err()[0].message,
        message
    );
}

#[test]
fn all_errors_are_reported_at_once() {
    let source = r#"(htp.host eq "x" or ip.src eq 5) and len(ip.src) gt 1 and ip.src in {1 "x"}"#;
    let errors = with_env(|env| predicate(source, env)).unwrap_err();
    let marked: Vec<&str> = errors.iter().map(|error| shown(source, error).0).collect();
    assert_eq!(marked, ["htp.host", "5", "ip.src", "1", "\"x\""]);
    let lexed = with_env(|env| predicate("ssl # 10.0.0 %", env)).unwrap_err();
    assert_eq!(lexed.len(), 3);
}

#[test]
fn a_list_without_an_index_gets_a_hint() {
    let source = r#"http.request.headers["x"] eq "y""#;
    let errors = with_env(|env| predicate(source, env)).unwrap_err();
    let help = errors[0].help.as_deref().unwrap();
    assert!(help.contains(r#"http.request.headers["x"][0]"#), "{help}");
    assert!(
        help.contains(r#"any(http.request.headers["x"][*] …)"#),
        "{help}"
    );
}
