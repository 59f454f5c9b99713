//! `rewrite`: a new path from the parts of the old one.

use super::path::PathPattern;
use crate::facts::path;

/// A template for the path that the upstream gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRewrite {
    parts: Vec<RewritePart>,
    /// What the route matches.
    from: PathPattern,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum RewritePart {
    /// Text that starts with `/`.
    Text(Box<str>),
    /// The segment of the old path with this index.
    Segment(usize),
    /// What follows the fixed part of the old path.
    Rest,
}

// === impl PathRewrite ===

impl PathRewrite {
    /// Parses a template such as `/v2/orders/{id}` or `/new/*`. `from` is the path of the route, which defines the
    /// names. The error is a message for the user.
    pub fn parse(text: &str, from: &PathPattern) -> Result<Self, String> {
        let (fixed, open) = match text.strip_suffix("/*") {
            Some(fixed) => (fixed, true),
            None => (text, false),
        };
        check(text, fixed)?;
        if open && !from.is_open() {
            return Err(format!("`{text}` ends with `/*`, but `path` does not"));
        }
        let segments = fixed.split('/').skip(1);
        let parts = segments.map(|segment| part(segment, from));
        let mut parts = parts.collect::<Result<Vec<_>, _>>()?;
        if open {
            parts.push(RewritePart::Rest);
        }
        let from = from.clone();
        Ok(Self { parts, from })
    }

    /// The new path for a path in normal form that the route matches.
    pub fn apply(&self, path: &str) -> String {
        let mut rewritten = String::with_capacity(path.len());
        for part in &self.parts {
            match part {
                RewritePart::Text(text) => rewritten.push_str(text),
                RewritePart::Segment(index) => {
                    rewritten.push('/');
                    rewritten.push_str(path.split('/').nth(index + 1).unwrap_or_default());
                }
                RewritePart::Rest => rewritten.push_str(self.from.rest_of(path)),
            }
        }
        if rewritten.is_empty() {
            rewritten.push('/');
        }
        rewritten
    }
}

fn part(segment: &str, from: &PathPattern) -> Result<RewritePart, String> {
    let name = segment.strip_prefix('{').and_then(|t| t.strip_suffix('}'));
    let Some(name) = name else {
        if segment.contains(['{', '}']) {
            return Err(format!(
                "`{segment}` is not a placeholder; one is a whole segment, as in `/orders/{{id}}`"
            ));
        }
        return Ok(RewritePart::Text(format!("/{segment}").into()));
    };
    let found = from.variable(name).map(RewritePart::Segment);
    found.ok_or_else(|| {
        let names: Vec<_> = from.variables().map(|one| format!("`{{{one}}}`")).collect();
        match names.as_slice() {
            [] => format!("`path` has no placeholder `{{{name}}}`"),
            names => format!(
                "`path` has no placeholder `{{{name}}}`; it has {}",
                names.join(", ")
            ),
        }
    })
}

/// Checks that the fixed part is a path in normal form.
fn check(text: &str, fixed: &str) -> Result<(), String> {
    if !text.starts_with('/') {
        return Err(format!("`{text}` is not a path; it starts with `/`"));
    }
    if fixed.contains('*') {
        return Err(format!(
            "`*` in `{text}` is allowed only at the end, after a `/`, as in `/api/*`"
        ));
    }
    let plain = fixed.replace(['{', '}'], "");
    match path::normalise(&plain) {
        Ok(normal) if *normal == *plain => Ok(()),
        Err(path::PathError::Relative) if plain.is_empty() => Ok(()),
        _ => Err(format!("`{text}` is not a path in normal form")),
    }
}

#[cfg(test)]
mod tests {
    use super::{PathPattern, PathRewrite};

    fn rewrite(from: &str, to: &str) -> Result<PathRewrite, String> {
        let from = match from {
            "" => PathPattern::Any,
            from => PathPattern::parse(from).unwrap(),
        };
        PathRewrite::parse(to, &from)
    }

    #[test]
    fn parts_of_the_old_path_are_filled_in() {
        for (from, to, path, expected) in [
            (
                "/orders/{id}",
                "/v2/orders/{id}",
                "/orders/7",
                "/v2/orders/7",
            ),
            ("/{a}/{b}", "/{b}/x/{a}", "/1/2%2F", "/2%2F/x/1"),
            ("/{a}/*", "/{a}", "/1/2/3", "/1"),
            ("/old/*", "/new/*", "/old/a/b", "/new/a/b"),
            ("/old/*", "/new/*", "/old", "/new"),
            ("/old/*", "/new/*", "/old/", "/new/"),
            ("/old/*", "/*", "/old", "/"),
            ("/old/*", "/*", "/old/a", "/a"),
            ("/old/{id}/*", "/{id}/new/*", "/old/7/a/b", "/7/new/a/b"),
            ("/old/{id}/*", "/new/*", "/old/7", "/new"),
            ("/*", "/app/*", "/a", "/app/a"),
            ("", "/app/*", "/a", "/app/a"),
            ("", "/app/*", "/", "/app/"),
            ("", "/index.html", "/a/b", "/index.html"),
            ("/a", "/", "/a", "/"),
        ] {
            let rewritten = rewrite(from, to).unwrap().apply(path);
            assert_eq!(rewritten, expected, "{from} {to} {path}");
        }
    }

    #[test]
    fn errors_are_explained() {
        for (from, to, says) in [
            (
                "/orders/{id}",
                "/{no}",
                "no placeholder `{no}`; it has `{id}`",
            ),
            ("/orders", "/{no}", "no placeholder `{no}`"),
            ("/orders", "/new/*", "but `path` does not"),
            ("/orders", "new", "starts with `/`"),
            ("/orders/*", "/a*", "only at the end"),
            ("/orders/{id}", "/x{id}", "a whole segment"),
            ("/orders", "/a//b", "normal form"),
            ("/orders", "/a?b", "normal form"),
            ("/orders", "/a/../b", "normal form"),
        ] {
            let message = rewrite(from, to).unwrap_err();
            assert!(message.contains(says), "{from} {to}: {message}");
        }
    }
}
