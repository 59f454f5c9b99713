//! Warnings of routes, trusted proxies and unused names.

use super::{TLS, deny, none, only};

#[test]
fn unused_lists_responses_and_upstreams() {
    only(
        &format!("{TLS}[lists]\noffice = [\"192.0.2.1\"]\n"),
        "no rule or route uses the list `office`",
    );
    none(&(deny("ip.src in $office") + "[lists]\noffice = [\"192.0.2.1\"]\n"));
    only(
        &format!("{TLS}[responses.late]\nbody = \"x\"\n"),
        "no rule or route uses the response `late`",
    );
    only(
        &format!("{TLS}[[upstreams]]\nname = \"app\"\nservers = [\"127.0.0.1:1\"]\n"),
        "no rule or route uses the upstream `app`",
    );
}

#[test]
fn routes_that_an_earlier_route_makes_unreachable() {
    let routes = |first: &str, second: &str| {
        format!("{TLS}[[routes]]\n{first}\nrespond = {{}}\n[[routes]]\n{second}\nrespond = {{}}\n")
    };
    let message = "no request reaches this route";
    only(&routes("", "path = \"/a\""), message);
    only(&routes("path = \"/a/*\"", "path = \"/a/b\""), message);
    only(&routes("path = \"/a/{x}\"", "path = \"/a/{x}\""), message);
    only(
        &routes("hosts = [\"a\", \"b\"]", "hosts = [\"b\"]\npath = \"/a\""),
        message,
    );
    only(&routes("path = \"/a/{x}\"", "path = \"/a/b\""), message);
    only(&routes("path = \"/a/*\"", "path = \"/a/{x}/c\""), message);
    only(&routes("path = \"/{x}/*\"", "path = \"/a/*\""), message);
    none(&routes("path = \"/{x}\"", "path = \"/a/*\""));
    none(&routes("path = \"/a/b\"", "path = \"/a/{x}\""));
    none(&routes("path = \"/x/*\"", "path = \"/{x}/a\""));
    let hosts = |first: &str, second: &str| {
        routes(
            &format!("hosts = [\"{first}\"]"),
            &format!("hosts = [\"{second}\"]"),
        )
    };
    only(&hosts("*.example.com", "api.example.com"), message);
    only(&hosts("*.example.com", "*.api.example.com:8443"), message);
    only(&hosts("example.com", "example.com:8443"), message);
    none(&hosts("*.example.com", "example.com"));
    none(&hosts("example.com:8443", "example.com"));
    none(&routes("path = \"/a/b\"", "path = \"/a/*\""));
    none(&routes("hosts = [\"a\"]", "hosts = [\"b\"]"));
    none(&routes("hosts = [\"a\"]", ""));
}

#[test]
fn a_route_with_conditions_hides_only_requests_that_meet_them() {
    let routes = |first: &str, second: &str| {
        format!("{TLS}[[routes]]\n{first}\nrespond = {{}}\n[[routes]]\n{second}\nrespond = {{}}\n")
    };
    let message = "no request reaches this route";
    only(&routes("", "methods = [\"GET\"]"), message);
    only(
        &routes(
            "methods = [\"GET\", \"PUT\"]",
            "methods = [\"GET\"]\npath = \"/a\"",
        ),
        message,
    );
    only(
        &routes(
            "headers = { a = \"1\" }",
            "headers = { b = \"2\", a = \"1\" }",
        ),
        message,
    );
    only(
        &routes("scheme = \"https\"", "scheme = \"https\"\npath = \"/a\""),
        message,
    );
    none(&routes("methods = [\"GET\"]", ""));
    none(&routes(
        "methods = [\"GET\"]",
        "methods = [\"GET\", \"PUT\"]",
    ));
    none(&routes(
        "headers = { a = \"1\" }",
        "headers = { a = \"2\" }",
    ));
    none(&routes("scheme = \"http\"", "scheme = \"https\""));
    none(&routes("listener = \"127.0.0.1:0\"", ""));
}

#[test]
fn a_route_for_https_without_tls() {
    let file = "[[listeners]]\naddress = \"127.0.0.1:0\"\n\
                [[routes]]\nscheme = \"https\"\nrespond = {}\n";
    only(file, "no request reaches this route: no listener has TLS");
    none(&format!(
        "[client_ip]\ntrusted_proxies = [\"10.0.0.1\"]\n{file}"
    ));
}

#[test]
fn a_trusted_network_that_includes_unknown_hosts() {
    only(
        &format!("{TLS}[client_ip]\ntrusted_proxies = [\"0.0.0.0/0\"]\n"),
        "every host in 0.0.0.0/0 can set the client address",
    );
    let trusted = |network: &str| format!("{TLS}[client_ip]\ntrusted_proxies = [\"{network}\"]\n");
    none(&trusted("fc00::/7"));
    only(
        &trusted("fc00::/6"),
        "every host in fc00::/6 can set the client address",
    );
}

#[test]
fn a_proxy_header_without_trusted_proxies() {
    let file = |trusted: &str| {
        format!(
            "[client_ip]\ntrusted_proxies = [{trusted}]\n\
             [[listeners]]\naddress = \"127.0.0.1:0\"\nproxy_protocol = true\n"
        )
    };
    only(
        &file(""),
        "no client can connect: only trusted proxies can send a PROXY header",
    );
    none(&file("\"10.0.0.1\""));
}
