//! Any template with any values: a value never ends the place that it stands in, and every mistake
//! is shown where it is.

use http::{HeaderValue, Request, StatusCode};
use lockgate::action::{RefusingRule, RequestInfo, ResponseTemplate, Template, block};
use lockgate::body::Body;
use lockgate::clock::Timestamp;

/// Takes the first line for the rule's name and the request's id, the rest for a template.
pub fn template(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (value, source) = text.split_once('\n').unwrap_or((text, text));
    any(source, value);
    json(value);
    html(value);
    csv(value);
}

fn any(source: &str, value: &str) {
    let template = match Template::parse(source) {
        Ok(template) => template,
        Err(error) => {
            let at = source.get(error.span.clone()).expect("inside the template");
            assert!(at.starts_with("{{"), "{error:?}");
            assert!(!error.message.is_empty());
            return;
        }
    };
    let names = source.contains("rule") || source.contains("retry_after");
    assert!(!template.names_rule_or_wait() || names);
    let values = source.matches("{{").count();
    for kind in ["application/json", "text/html", "text/javascript", "a/b"] {
        let filled = fill(&template, value, kind);
        // An escape has at most six times the letters.
        assert!(filled.len() <= source.len() + values * (255 + 6 * value.len()));
        if values == 0 {
            assert_eq!(filled, source);
        }
    }
}

fn json(value: &str) {
    let filled = fill_text(
        r#"{"{{rule}}":"{{request.id}}"}"#,
        value,
        "application/x+json",
    );
    let read: serde_json::Value = serde_json::from_str(&filled).expect("JSON");
    assert_eq!(read, serde_json::json!({ (value): value }), "{filled}");
}

fn html(value: &str) {
    for kind in ["Text/HTML; charset=utf-8", "application/xml"] {
        let filled = fill_text("{{rule}}", value, kind);
        let raw = |c: char| "<>\"'".contains(c) || c.is_control() && !"\n\t".contains(c);
        assert!(!filled.contains(raw), "{filled:?}");
        let mut plain = filled.clone();
        for (escape, letter) in [("lt", "<"), ("gt", ">"), ("quot", "\""), ("#39", "'")] {
            plain = plain.replace(&format!("&{escape};"), letter);
        }
        assert_eq!(plain.matches('&').count(), plain.matches("&amp;").count());
        let mut kept = value.to_owned();
        kept.retain(|c| "\n\t".contains(c) || !c.is_control());
        assert_eq!(plain.replace("&amp;", "&"), kept);
    }
    let script = fill_text("{{rule}}", value, "text/javascript");
    let ends = |c: char| "\"'`<>$&/\u{2028}\u{2029}".contains(c) || c.is_control();
    assert!(!script.contains(ends), "{script:?}");
}

fn csv(value: &str) {
    let filled = fill_text("{{rule}}", value, "text/csv");
    assert_eq!(filled.replace("\"\"", "\u{0}").matches('"').count(), 0);
}

fn fill_text(source: &str, value: &str, content_type: &'static str) -> String {
    let template = Template::parse(source).expect("a template");
    fill(&template, value, content_type)
}

fn fill(template: &Template, value: &str, content_type: &'static str) -> String {
    let canned = ResponseTemplate {
        status: StatusCode::FORBIDDEN,
        content_type: HeaderValue::from_static(content_type),
        headers: Vec::new(),
        body: template.clone(),
        html: None,
        json: None,
        imitate: false,
    };
    let (parts, ()) = Request::new(()).into_parts();
    let asked = RequestInfo::of(
        &parts,
        value,
        Timestamp::from_millis(1_700_000_000_999),
        None,
    );
    let refused = RefusingRule {
        rule: value,
        response: Some(&canned),
        retry_after: Some(u64::MAX),
    };
    match block(&asked, &refused).into_body() {
        Body::Whole(bytes) => String::from_utf8(bytes.to_vec()).expect("text"),
        Body::Empty => String::new(),
        Body::Stream(_) => panic!("a template is not streamed"),
    }
}
