//! Paths in all their spellings.

use std::borrow::Cow;

use proptest::prelude::*;

use super::{PathError, normalise};

const NORMAL: &[(&str, &str)] = &[
    ("/", "/"),
    ("/a", "/a"),
    ("/a/", "/a/"),
    ("/a/b/c", "/a/b/c"),
    ("/login", "/login"),
    ("//login", "/login"),
    ("///login", "/login"),
    ("/./login", "/login"),
    ("/%6cogin", "/login"),
    ("/%6Cogin", "/login"),
    ("/%6c%6f%67%69%6e", "/login"),
    ("/login/", "/login/"),
    ("/login//", "/login/"),
    ("/login/.", "/login/"),
    ("/login/./", "/login/"),
    ("/x/../login", "/login"),
    ("/x/%2e%2e/login", "/login"),
    ("/x/.%2e/login", "/login"),
    ("/x/%2E./login", "/login"),
    ("/%2e/login", "/login"),
    ("/..", "/"),
    ("/.", "/"),
    ("/../..", "/"),
    ("/../../a", "/a"),
    ("/a/..", "/"),
    ("/a/b/..", "/a/"),
    ("/a/b/../..", "/"),
    ("/a/b/../../../c", "/c"),
    ("/a//../b", "/b"),
    ("/a/./../b", "/b"),
    ("/a/../", "/"),
    ("//", "/"),
    ("////", "/"),
    ("/...", "/..."),
    ("/a/...", "/a/..."),
    ("/.well-known/acme", "/.well-known/acme"),
    ("/..a", "/..a"),
    ("/a..", "/a.."),
    ("/a.", "/a."),
    ("/.a/.b", "/.a/.b"),
    ("/@scope%2Fname", "/@scope%2Fname"),
    ("/@scope%2fname", "/@scope%2Fname"),
    ("/%40scope%2fname", "/%40scope%2Fname"),
    ("/a%5cb", "/a%5Cb"),
    ("/a%2Fb/../c", "/c"),
    ("/a%2F", "/a%2F"),
    ("/%2F", "/%2F"),
    ("/%2f%2f", "/%2F%2F"),
    ("/a%20b", "/a%20b"),
    ("/a%0ab", "/a%0Ab"),
    ("/a+b", "/a+b"),
    ("/a%2bb", "/a%2Bb"),
    ("/%7euser", "/~user"),
    ("/~user", "/~user"),
    ("/%41%5a%61%7a%30%39%2d%5f", "/AZaz09-_"),
    ("/%252e%252e/a", "/%252e%252e/a"),
    ("/%25%32%65", "/%252e"),
    ("/a;b=c/d", "/a;b=c/d"),
    ("/a,b:c@d!$&'()*=", "/a,b:c@d!$&'()*="),
    ("/[slug]", "/[slug]"),
    ("/%5bslug%5d", "/%5Bslug%5D"),
    ("/caf\u{e9}", "/caf%C3%A9"),
    ("/caf%c3%a9", "/caf%C3%A9"),
    ("/{id}|\"<>^`", "/%7Bid%7D%7C%22%3C%3E%5E%60"),
    ("/%ff", "/%FF"),
    ("/LOGIN", "/LOGIN"),
    ("/a%3fb", "/a%3Fb"),
    ("/a%23b", "/a%23b"),
];

const REFUSED: &[(&str, PathError)] = &[
    ("", PathError::Relative),
    ("a", PathError::Relative),
    ("*", PathError::Relative),
    ("%2Fa", PathError::Relative),
    ("/%00", PathError::Nul),
    ("/a%00b", PathError::Nul),
    ("/%", PathError::Escape),
    ("/%4", PathError::Escape),
    ("/%4/a", PathError::Escape),
    ("/%zz", PathError::Escape),
    ("/%4g", PathError::Escape),
    ("/%+1", PathError::Escape),
    ("/%%41", PathError::Escape),
    ("/a\tb", PathError::Control),
    ("/a\nb", PathError::Control),
    ("/a\0b", PathError::Control),
    ("/a b", PathError::Control),
    ("/a\u{7f}b", PathError::Control),
    ("/a\\b", PathError::Backslash),
    ("/..\\a", PathError::Backslash),
    ("/a?b", PathError::Delimiter),
    ("/a#b", PathError::Delimiter),
    ("/..%2f", PathError::HiddenDots),
    ("/..%2Fadmin", PathError::HiddenDots),
    ("/%2e%2e%2fadmin", PathError::HiddenDots),
    ("/%2e%2e%5c", PathError::HiddenDots),
    ("/.%2e%5cadmin", PathError::HiddenDots),
    ("/a%2f..%2fb", PathError::HiddenDots),
    ("/a%2f..", PathError::HiddenDots),
    ("/a%5c..%5cb", PathError::HiddenDots),
    ("/a%2f.", PathError::HiddenDots),
    ("/.%2f", PathError::HiddenDots),
    ("/a%5C%2e", PathError::HiddenDots),
    ("/..;/admin", PathError::HiddenDots),
    ("/..;a=b/admin", PathError::HiddenDots),
    ("/.;/admin", PathError::HiddenDots),
    ("/%2e%2e%3b/admin", PathError::HiddenDots),
    ("/a%2f..;x", PathError::HiddenDots),
    ("/;/admin", PathError::Nameless),
    ("/a/;x=y/admin", PathError::Nameless),
    ("/%3bx/admin", PathError::Nameless),
    ("//;/admin", PathError::Nameless),
    ("/;/", PathError::Nameless),
    ("/;/a\0", PathError::Control),
];

#[test]
fn every_spelling_has_its_normal_form() {
    for (path, normal) in NORMAL {
        assert_eq!(normalise(path).as_deref(), Ok(*normal), "{path}");
    }
}

#[test]
fn ambiguous_paths_are_refused() {
    for (path, bad) in REFUSED {
        assert_eq!(normalise(path), Err(*bad), "{path:?}");
    }
}

#[test]
fn a_normal_path_is_borrowed() {
    for path in ["/", "/a/b", "/.well-known/x", "/@scope%2Fname", "/a/"] {
        assert!(matches!(normalise(path), Ok(Cow::Borrowed(_))), "{path}");
    }
}

/// Paths made of the pieces that matter, so that most of them are accepted.
fn tricky() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("/"),
        Just("."),
        Just(".."),
        Just("%2e"),
        Just("%2F"),
        Just("%5c"),
        Just("%25"),
        Just("%6c"),
        Just("a"),
        Just(";"),
        Just("%"),
        Just("\u{e9}"),
    ];
    proptest::collection::vec(piece, 0..16).prop_map(|pieces| format!("/{}", pieces.concat()))
}

fn holds(path: &str) -> Result<(), TestCaseError> {
    let Ok(normal) = normalise(path) else {
        return Ok(());
    };
    prop_assert!(normal.starts_with('/'));
    prop_assert!(normal.bytes().all(|b| b.is_ascii_graphic()));
    let ended = format!("{normal}/");
    for never in ["/./", "/../"] {
        prop_assert!(!ended.contains(never), "{path} gave {normal}");
    }
    prop_assert!(!normal.contains("//"), "{path} gave {normal}");
    prop_assert_eq!(normalise(&normal), Ok(Cow::Borrowed(&*normal)));
    Ok(())
}

proptest! {
    #[test]
    fn any_string_is_refused_or_has_one_normal_form(path in any::<String>()) {
        holds(&path)?;
        holds(&format!("/{path}"))?;
    }

    #[test]
    fn tricky_strings_are_refused_or_have_one_normal_form(path in tricky()) {
        holds(&path)?;
    }
}
