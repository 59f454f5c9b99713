//! Tests of what rules read of a body.

use http::HeaderValue;
use proptest::prelude::*;

use super::*;

fn form(bytes: &str) -> InspectedBody {
    InspectedBody::new(
        Bytes::copy_from_slice(bytes.as_bytes()),
        true,
        BodyKind::Form,
    )
}

fn kind(headers: &[(&'static str, &'static str)]) -> BodyKind {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, HeaderValue::from_static(value));
    }
    BodyKind::of(&map)
}

#[test]
fn headers_declare_the_kind_of_a_body() {
    let form = "application/x-www-form-urlencoded";
    assert_eq!(kind(&[("content-type", form)]), BodyKind::Form);
    let with_charset = "Application/X-WWW-form-urlencoded ; charset=UTF-8";
    assert_eq!(kind(&[("content-type", with_charset)]), BodyKind::Form);
    assert_eq!(
        kind(&[("content-type", "application/json")]),
        BodyKind::Plain
    );
    assert_eq!(kind(&[]), BodyKind::Plain);
    let multipart = "Multipart/form-data; boundary=x";
    assert_eq!(kind(&[("content-type", multipart)]), BodyKind::Multipart);
    let gzip = [("content-type", form), ("content-encoding", "gzip")];
    assert_eq!(kind(&gzip), BodyKind::Encoded);
    let identity = [("content-type", form), ("content-encoding", "Identity")];
    assert_eq!(kind(&identity), BodyKind::Form);
    // An origin server may read the other line.
    let two = [("content-type", form), ("content-type", "text/plain")];
    assert_eq!(kind(&two), BodyKind::Plain);
}

#[test]
fn a_form_is_decoded() {
    let body = form("user=J%C3%BCrgen+K&%70ass=%26%3D%zz&user=b");
    let value = |name: &[u8], nth| body.form_value(name, nth).map(Cow::into_owned);
    assert_eq!(value(b"user", 0).as_deref(), Some("Jürgen K".as_bytes()));
    assert_eq!(value(b"user", 1).as_deref(), Some(&b"b"[..]));
    assert_eq!(value(b"pass", 0).as_deref(), Some(&b"&=%zz"[..]));
    assert_eq!(value(b"other", 0), None);
}

#[test]
fn only_a_complete_form_has_fields() {
    let bytes = Bytes::from_static(b"user=a");
    for (is_complete, kind, has_form, has_raw) in [
        (true, BodyKind::Form, true, true),
        (false, BodyKind::Form, false, true),
        (true, BodyKind::Plain, false, true),
        (true, BodyKind::Multipart, false, false),
        (true, BodyKind::Encoded, false, false),
    ] {
        let body = InspectedBody::new(bytes.clone(), is_complete, kind);
        assert_eq!(body.has_form(), has_form, "{kind:?}");
        assert_eq!(body.form_value(b"user", 0).is_some(), has_form, "{kind:?}");
        assert_eq!(!body.form_fields().is_empty(), has_form, "{kind:?}");
        assert_eq!(body.raw().is_some(), has_raw, "{kind:?}");
    }
}

#[test]
fn a_form_with_too_many_fields_has_none() {
    let fields = |count: usize| vec!["a=1"; count].join("&");
    assert!(form(&fields(MAX_FORM_FIELDS)).has_form());
    assert!(!form(&fields(MAX_FORM_FIELDS + 1)).has_form());
}

#[test]
fn a_body_is_read_only_for_what_it_can_have() {
    let raw = BodyReads {
        raw: true,
        ..BodyReads::default()
    };
    let truncated = BodyReads {
        truncated: true,
        ..BodyReads::default()
    };
    let kinds = [
        BodyKind::Form,
        BodyKind::Plain,
        BodyKind::Multipart,
        BodyKind::Encoded,
    ];
    let in_kinds = |reads: BodyReads| kinds.map(|kind| reads.are_in(kind));
    assert_eq!(in_kinds(BodyReads::FORM), [true, false, false, false]);
    assert_eq!(in_kinds(raw), [true, true, false, false]);
    assert_eq!(in_kinds(truncated), [true; 4]);
    assert_eq!(in_kinds(BodyReads::default()), [false; 4]);
}

proptest! {
    #[test]
    fn any_bytes_are_a_form(bytes in any::<Vec<u8>>()) {
        let body = InspectedBody::new(bytes.into(), true, BodyKind::Form);
        for (name, value) in body.form_fields() {
            let mut named = body.form_fields().iter().filter(|(other, _)| other == name);
            let first = named.next().map(|(_, value)| &**value);
            let found = body.form_value(name, 0);
            prop_assert_eq!(found.as_deref(), first);
            prop_assert!(name.len() + value.len() <= body.bytes().len());
        }
    }
}
