//! The table of paths and methods, and the endpoint of each.

use http::Method;

use super::access::PathAccess;
use super::api_error::ApiError;
use super::query::decode;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    Health,
    Ready,
    Metrics,
    Page,
    Script,
    Style,
    Status,
    History,
    Events,
    Rules,
    Rule,
    TopKeys,
    Mitigations,
    RemoveMitigations,
    AddMitigation,
    Client,
    Exemptions,
    AddExemption,
    RemoveExemption,
    Explain,
    Upstreams,
    SetServer,
    Reload,
    OpenApi,
}

/// A path of the admin port.
pub struct RoutePath {
    /// The path. A segment in braces takes any value.
    pub pattern: &'static str,
    /// Which requests are accepted.
    pub access: PathAccess,
    /// The methods, in the order of `Allow`. GET implies HEAD.
    pub methods: &'static [(Method, Endpoint)],
}

/// The endpoint of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedEndpoint {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The decoded values of the segments in braces.
    pub names: Vec<String>,
}

/// Every path and method.
pub const ROUTES: &[RoutePath] = &[
    route(
        "/healthz",
        PathAccess::Open,
        &[(Method::GET, Endpoint::Health)],
    ),
    route(
        "/readyz",
        PathAccess::Open,
        &[(Method::GET, Endpoint::Ready)],
    ),
    route(
        "/metrics",
        PathAccess::Token,
        &[(Method::GET, Endpoint::Metrics)],
    ),
    route("/", PathAccess::NoToken, &[(Method::GET, Endpoint::Page)]),
    route(
        "/app.js",
        PathAccess::NoToken,
        &[(Method::GET, Endpoint::Script)],
    ),
    route(
        "/app.css",
        PathAccess::NoToken,
        &[(Method::GET, Endpoint::Style)],
    ),
    route(
        "/api/status",
        PathAccess::Token,
        &[(Method::GET, Endpoint::Status)],
    ),
    route(
        "/api/history",
        PathAccess::Token,
        &[(Method::GET, Endpoint::History)],
    ),
    route(
        "/api/events",
        PathAccess::Token,
        &[(Method::GET, Endpoint::Events)],
    ),
    route(
        "/api/rules",
        PathAccess::Token,
        &[(Method::GET, Endpoint::Rules)],
    ),
    route(
        "/api/rules/{name}",
        PathAccess::Token,
        &[(Method::GET, Endpoint::Rule)],
    ),
    route(
        "/api/rules/{name}/top",
        PathAccess::Token,
        &[(Method::GET, Endpoint::TopKeys)],
    ),
    route(
        "/api/mitigations",
        PathAccess::Token,
        &[
            (Method::GET, Endpoint::Mitigations),
            (Method::POST, Endpoint::AddMitigation),
            (Method::DELETE, Endpoint::RemoveMitigations),
        ],
    ),
    route(
        "/api/clients/{id}",
        PathAccess::Token,
        &[(Method::GET, Endpoint::Client)],
    ),
    route(
        "/api/exemptions",
        PathAccess::Token,
        &[
            (Method::GET, Endpoint::Exemptions),
            (Method::POST, Endpoint::AddExemption),
            (Method::DELETE, Endpoint::RemoveExemption),
        ],
    ),
    route(
        "/api/explain",
        PathAccess::Token,
        &[(Method::POST, Endpoint::Explain)],
    ),
    route(
        "/api/upstreams",
        PathAccess::Token,
        &[(Method::GET, Endpoint::Upstreams)],
    ),
    route(
        "/api/upstreams/{name}/{server}",
        PathAccess::Token,
        &[(Method::PUT, Endpoint::SetServer)],
    ),
    route(
        "/api/reload",
        PathAccess::Token,
        &[(Method::POST, Endpoint::Reload)],
    ),
    route(
        "/api/openapi.json",
        PathAccess::Token,
        &[(Method::GET, Endpoint::OpenApi)],
    ),
];

const fn route(
    pattern: &'static str,
    access: PathAccess,
    methods: &'static [(Method, Endpoint)],
) -> RoutePath {
    RoutePath {
        pattern,
        access,
        methods,
    }
}

/// Returns which requests for `path` are accepted. An unknown path needs the token, so that it reveals nothing.
pub fn access_of(path: &str) -> PathAccess {
    find(path).map_or(PathAccess::Token, |(route, _)| route.access)
}

/// Returns the endpoint of a method and a path.
pub fn endpoint_of(method: &Method, path: &str) -> Result<MatchedEndpoint, ApiError> {
    let Some((route, names)) = find(path) else {
        return Err(ApiError::not_found("this path does not exist"));
    };
    let wanted = if *method == Method::HEAD {
        &Method::GET
    } else {
        method
    };
    let mut methods = route.methods.iter();
    match methods.find(|(own, _)| own == wanted) {
        Some((_, endpoint)) => Ok(MatchedEndpoint {
            endpoint: *endpoint,
            names,
        }),
        None => Err(ApiError::wrong_method(&route.allow())),
    }
}

fn find(path: &str) -> Option<(&'static RoutePath, Vec<String>)> {
    ROUTES
        .iter()
        .find_map(|route| Some((route, route.names(path)?)))
}

// === impl RoutePath ===

impl RoutePath {
    /// Returns the values of the segments in braces. `None` if the path does not match.
    fn names(&self, path: &str) -> Option<Vec<String>> {
        let (mut pattern, mut written) = (self.pattern.split('/'), path.split('/'));
        let mut names = Vec::new();
        loop {
            match (pattern.next(), written.next()) {
                (None, None) => return Some(names),
                (Some(name), Some(value)) if name.starts_with('{') => {
                    names.push(decode(value).filter(|name| !name.is_empty())?);
                }
                (Some(own), Some(value)) if own == value => {}
                _ => return None,
            }
        }
    }

    /// Returns the value of `Allow`.
    fn allow(&self) -> String {
        let names = self.methods.iter().map(|(method, _)| match *method {
            Method::GET => "GET, HEAD",
            ref other => other.as_str(),
        });
        names.collect::<Vec<_>>().join(", ")
    }
}

// === impl Endpoint ===

impl Endpoint {
    /// Returns whether a request changes something, so that a draining gateway refuses it.
    pub const fn changes(self) -> bool {
        matches!(
            self,
            Self::RemoveMitigations
                | Self::AddMitigation
                | Self::AddExemption
                | Self::RemoveExemption
                | Self::SetServer
                | Self::Reload
        )
    }

    /// Returns the names of the parameters in the query. An endpoint without any ignores the query.
    pub const fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::History => &["seconds"],
            Self::Events => &["rule", "action", "ip"],
            Self::TopKeys => &["n"],
            Self::Mitigations => &["rule", "q", "view", "limit", "cursor"],
            Self::RemoveMitigations => &["rule", "key", "id", "q", "view"],
            Self::RemoveExemption => &["ip"],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    fn found(method: Method, path: &str) -> Result<(Endpoint, Vec<String>), u16> {
        let matched = endpoint_of(&method, path);
        let matched = matched.map(|matched| (matched.endpoint, matched.names));
        matched.map_err(|error| error.status.as_u16())
    }

    #[test]
    fn names_are_decoded() {
        let rule = found(Method::GET, "/api/rules/login%2Fsite/top");
        assert_eq!(rule, Ok((Endpoint::TopKeys, vec!["login/site".into()])));
        let server = found(Method::PUT, "/api/upstreams/app/unix:%2Frun%2Fapp.sock");
        let names = vec!["app".into(), "unix:/run/app.sock".into()];
        assert_eq!(server, Ok((Endpoint::SetServer, names)));
    }

    #[test]
    fn unknown_paths_are_not_found() {
        for path in [
            "",
            "/metrics/",
            "//metrics",
            "/healthz/../metrics",
            "/api",
            "/api/",
            "/api/rules/",
            "/api/rules/%ff",
            "/api/rules/a/b",
            "/api/rules/a/top/",
        ] {
            assert_eq!(found(Method::GET, path), Err(404), "{path}");
            assert_eq!(access_of(path), PathAccess::Token, "{path}");
        }
    }

    #[test]
    fn a_wrong_method_names_the_right_ones() {
        assert_eq!(
            found(Method::HEAD, "/metrics"),
            Ok((Endpoint::Metrics, vec![]))
        );
        let error = endpoint_of(&Method::PUT, "/api/mitigations").unwrap_err();
        assert_eq!(error.status, StatusCode::METHOD_NOT_ALLOWED);
        let (_, allow) = *error.header.unwrap();
        assert_eq!(allow, "GET, HEAD, POST, DELETE");
        assert_eq!(found(Method::HEAD, "/api/reload"), Err(405));
        assert_eq!(found(Method::OPTIONS, "/api/status"), Err(405));
    }
}
