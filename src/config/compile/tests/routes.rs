//! Routes that listeners imply.

use http::Request;

use super::compile;
use crate::facts::{ClientConnection, RequestHead};
use crate::snapshot::RouteTarget;

/// The location for a request to the plain listener, if the first TLS listener is at `address`.
fn location(address: &str, target: &str) -> Option<String> {
    let text = format!(
        "[[listeners]]\nname = \"plain\"\naddress = \"127.0.0.1:80\"\nredirect_to_https = true\n\
         [[listeners]]\naddress = \"{address}\"\n[listeners.tls]\n\
         [[listeners]]\naddress = \"127.0.0.1:9443\"\n[listeners.tls]\n\
         [[routes]]\nrespond = {{}}\n"
    );
    let snapshot = compile(&text).unwrap_or_else(|errors| panic!("{errors}"));
    let request = Request::get(target).header("host", "example.com:80");
    let (parts, ()) = request.body(()).unwrap().into_parts();
    let head = RequestHead::read(&parts, false).unwrap();
    let connection = ClientConnection {
        peer: ([127, 0, 0, 1], 1).into(),
        listener: "plain".into(),
        tls: None,
    };
    let (_, route) = snapshot.route_of(&head, &parts.headers, &connection)?;
    match &route.target {
        RouteTarget::Redirect(template, status) => {
            assert_eq!(status.as_u16(), 308);
            let location = template.expand(&head)?;
            Some(location.to_str().unwrap().to_owned())
        }
        _ => None,
    }
}

#[test]
fn redirect_to_https_names_the_port_of_the_first_tls_listener() {
    let to = |address, target| location(address, target).unwrap();
    assert_eq!(to("127.0.0.1:443", "/a?b"), "https://example.com/a?b");
    assert_eq!(to("127.0.0.1:8443", "/a?b"), "https://example.com:8443/a?b");
    assert_eq!(
        location("127.0.0.1:443", "/.well-known/acme-challenge/x"),
        None
    );
}
