//! The fields of a form as hidden inputs.

use proptest::prelude::*;

use super::*;

fn inputs(body: &str) -> String {
    hidden_inputs(body.as_bytes()).unwrap_or_else(|| "none".into())
}

#[test]
fn fields_keep_their_order_and_duplicates() {
    let input = |name: &str, value: &str| {
        format!("<input type=\"hidden\" name=\"{name}\" value=\"{value}\">\n")
    };
    assert_eq!(
        inputs("user=a+b&user=%C3%A4&submit&x=1=2"),
        input("user", "a b") + &input("user", "ä") + &input("submit", "") + &input("x", "1=2")
    );
    assert_eq!(inputs(""), "");
}

#[test]
fn markup_is_escaped() {
    let expected =
        "<input type=\"hidden\" name=\"&quot;&gt;\" value=\"&lt;script&gt;&amp;&#39;\">\n";
    assert_eq!(inputs("%22%3E=%3Cscript%3E%26%27"), expected);
    assert!(inputs("a=x%0d%0ay%09z").contains("value=\"x&#13;&#10;y&#9;z\""));
}

#[test]
fn what_a_form_cannot_hold_is_not_repeated() {
    assert_eq!(inputs("a=%ff"), "none");
    assert_eq!(inputs("a=%00"), "none");
    assert_eq!(hidden_inputs(b"a=\xff"), None);
    assert_eq!(inputs("a=1&=2"), "none");
    assert_eq!(inputs("="), "none");
    assert_ne!(inputs("a=1&&b=2"), "none");
    assert_ne!(inputs(&"a=1&".repeat(256)), "none");
    assert_eq!(inputs(&"a=1&".repeat(257)), "none");
}

proptest! {
    #[test]
    fn nothing_ends_an_attribute(body: Vec<u8>) {
        let html = hidden_inputs(&body).unwrap_or_default();
        for line in html.lines() {
            let value = line.strip_prefix("<input type=\"hidden\" name=\"").unwrap();
            let value = value.strip_suffix("\">").unwrap();
            let (name, value) = value.split_once("\" value=\"").unwrap();
            prop_assert!(!name.contains(['<', '>', '"', '\'']));
            prop_assert!(!value.contains(['<', '>', '"', '\'']));
        }
    }
}
