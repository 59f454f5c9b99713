//! URLs, parameters and errors of the client.

use super::*;

#[test]
fn a_url_selects_the_gateway() {
    let client = |url: &str| {
        let client = AdminClient::new(url).unwrap();
        (client.authority, client.prefix)
    };
    let is = |authority: &str, prefix: &str| (authority.to_owned(), prefix.to_owned());
    assert_eq!(client("http://127.0.0.1:9901"), is("127.0.0.1:9901", ""));
    assert_eq!(client("localhost:9901/"), is("localhost:9901", ""));
    assert_eq!(
        client("http://ops.example/edge/"),
        is("ops.example:80", "/edge")
    );
    assert_eq!(client("http://[::1]:9901"), is("[::1]:9901", ""));
    for wrong in [
        "https://a",
        "ftp://a",
        "http://",
        "http://a b",
        "http://u@a",
        "http://a?x",
    ] {
        assert!(AdminClient::new(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn parameters_are_escaped() {
    let query = query(&[("rule", "a/b"), ("key", "ä &=\r\n")]);
    assert_eq!(query, "?rule=a%2Fb&key=%C3%A4%20%26%3D%0D%0A");
    assert_eq!(super::query(&[]), "");
}

#[test]
fn errors_have_the_sentence_of_the_gateway() {
    let error = AdminClientError::of(404, "{\"error\": \"there is no such rule\"}");
    assert_eq!(error.to_string(), "there is no such rule");
    let error = AdminClientError::of(502, "<html>");
    assert_eq!(error.to_string(), "the gateway responded with status 502");
    assert!(matches!(
        AdminClientError::of(401, ""),
        AdminClientError::WrongToken
    ));
}
