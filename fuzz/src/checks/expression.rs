//! Any text as an expression: it compiles and answers alike each time, or every mistake is shown
//! where it is.

use std::sync::LazyLock;

use http::request::Parts;
use http::{HeaderMap, Request};
use lockgate::expr::{
    self, ExprEnv, ExprError, FieldFacts, NamedList, NamedLists, Predicate, Scalar,
};
use lockgate::facts::{FieldTable, ResponseFacts};

use super::sample;

/// Compiles `data` as a test and as a value, and asks both of a few requests.
pub fn expression(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else {
        return;
    };
    test(source);
    value(source);
}

fn test(source: &str) {
    let compile = |source: &str, allow_response| expr::predicate(source, &env(allow_response));
    let compiled = compile(source, true);
    let early = compile(source, false);
    match (&compiled, &early) {
        (Ok(test), _) => {
            assert_eq!(test.source(), source);
            assert_eq!(early.is_err(), test.reads_response());
            let opposite = compile(&format!("not ({source})"), true);
            // One level deeper or a few characters longer may be too much.
            answers(test, opposite.ok().as_ref());
        }
        (Err(errors), Err(early)) => {
            check_errors(source, errors);
            check_errors(source, early);
        }
        (Err(_), Ok(_)) => panic!("a response field makes it worse"),
    }
}

fn value(source: &str) {
    match expr::scalar(source, &env(true)) {
        Ok(value) => {
            assert_eq!(value.source(), source);
            values(&value);
        }
        Err(errors) => check_errors(source, &errors),
    }
}

fn answers(test: &Predicate, opposite: Option<&Predicate>) {
    for_all(&mut |facts| {
        let answer = test.test(facts);
        assert_eq!(answer, test.test(facts));
        if let Some(opposite) = opposite {
            assert_ne!(answer, opposite.test(facts));
        }
    });
}

fn values(value: &Scalar) {
    for_all(&mut |facts| assert_eq!(value.eval(facts), value.eval(facts)));
}

/// At most one mistake a character, each inside the source with something to read.
fn check_errors(source: &str, errors: &[ExprError]) {
    assert!(!errors.is_empty());
    assert!(errors.len() <= source.chars().count().max(1));
    for error in errors {
        assert!(source.get(error.span.clone()).is_some(), "{error:?}");
        assert!(!error.message.is_empty());
        assert!(error.message.len() <= 4 * source.len() + 1000, "{error:?}");
        assert!(error.help.as_deref() != Some(""), "{error:?}");
    }
}

/// Runs `ask` on each sample, before and after its response.
fn for_all(ask: &mut dyn FnMut(&dyn FieldFacts)) {
    let headers = HeaderMap::from_iter([(
        http::header::CONTENT_TYPE,
        http::HeaderValue::from_static("text/html; charset=utf-8"),
    )]);
    let response = ResponseFacts {
        status: 401,
        headers: &headers,
        duration_ms: 12,
        body_size: Some(9),
        upstream: Some("app"),
        upstream_error: None,
    };
    let [bare, full] = &*SAMPLES;
    sample::plain(bare, &mut |facts| {
        ask(facts);
        ask(&facts.with_response(&response));
    });
    sample::over_tls(full, &mut |facts| {
        ask(facts);
        ask(&facts.with_response(&response));
    });
}

fn env(allow_response: bool) -> ExprEnv<'static> {
    ExprEnv {
        scheme: &FieldTable,
        lists: &LISTS,
        allow_response,
    }
}

static LISTS: LazyLock<NamedLists> = LazyLock::new(|| {
    let mut lists = NamedLists::new();
    let mut add = |name: &str, values: &[&str]| {
        let list = NamedList::from_texts(values.iter().copied());
        lists.insert(name, list);
    };
    add("office", &["192.0.2.0/24", "2001:db8::/48"]);
    add("agents", &["sqlmap", "nikto"]);
    add("hosters", &["64500", "64501"]);
    add("nothing", &[]);
    lists
});

static SAMPLES: LazyLock<[Parts; 2]> = LazyLock::new(|| {
    let bare = Request::get("/").header("host", "shop.example");
    let full = Request::post("//api/v1/./Login.php?user=a&user=b%20c&q=%ff")
        .header("host", "Shop.Example:8443")
        .header("user-agent", b"curl/8 \xff".as_slice())
        .header("cookie", "session=abc; theme=dark")
        .header("cookie", "session=\"def\"")
        .header("x-tag", "one")
        .header("x-tag", "a*b")
        .header("x-token", "eyJhbGciOiJub25lIn0.eyJzdWIiOiI3In0.")
        .header("x-json", r#"{"a":{"b":[1,"two"]},"n":7}"#)
        .header("referer", "https://r.example/?a=%41+b")
        .header("content-length", "1500")
        .header("x-forwarded-for", "1.1.1.1, 2.2.2.2");
    [bare, full].map(|builder| builder.body(()).expect("a request").into_parts().0)
});
