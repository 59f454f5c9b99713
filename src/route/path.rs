//! Path templates.

use crate::facts::path;

/// The paths that a route matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathPattern {
    /// Any path, including the `*` of `OPTIONS *`.
    Any,
    /// This path.
    Exact(Box<str>),
    /// This path, stored without a trailing `/`, and everything below.
    Prefix(Box<str>),
    /// Segments, some of which are variables.
    Template {
        /// The segments in order.
        segments: Box<[PathSegment]>,
        /// Whether everything below matches too.
        open: bool,
    },
}

/// A segment of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathSegment {
    /// Exactly this text.
    Literal(Box<str>),
    /// `{name}`: any segment that is not empty.
    Variable(Box<str>),
}

// === impl PathPattern ===

impl PathPattern {
    /// Parses a template. The error is a message for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (path, open) = match text.strip_suffix("/*") {
            Some(path) => (path, true),
            None => (text, false),
        };
        check(text, path)?;
        if !path.contains(['{', '}']) {
            let path = Box::from(path);
            return Ok(if open {
                Self::Prefix(path)
            } else {
                Self::Exact(path)
            });
        }
        let segments = path.split('/').skip(1).map(segment);
        let segments = segments.collect::<Result<Box<[_]>, _>>()?;
        Ok(Self::Template { segments, open })
    }

    /// Whether the pattern matches `path`, in normal form.
    pub fn matches(&self, path: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(exact) => path == &**exact,
            Self::Prefix(prefix) => {
                let rest = path.strip_prefix(&**prefix);
                rest.is_some_and(|rest| rest.starts_with('/') || rest.is_empty())
            }
            Self::Template { segments, open } => fits(segments, *open, path),
        }
    }
}

/// What rewriting needs.
impl PathPattern {
    /// Whether paths below the fixed part match too.
    pub(super) fn is_open(&self) -> bool {
        matches!(
            self,
            Self::Any | Self::Prefix(_) | Self::Template { open: true, .. }
        )
    }

    /// The names of the variables, in order.
    pub(super) fn variables(&self) -> impl Iterator<Item = &str> {
        self.segments().iter().filter_map(PathSegment::name)
    }

    /// The index of the segment with this name. `None` if no segment has it.
    pub(super) fn variable(&self, name: &str) -> Option<usize> {
        let mut segments = self.segments().iter();
        segments.position(|segment| segment.name() == Some(name))
    }

    /// The part of a matching path after the fixed part: empty, or text that starts with `/`.
    pub(super) fn rest_of<'p>(&self, path: &'p str) -> &'p str {
        match self {
            Self::Any => path,
            Self::Exact(_) => "",
            Self::Prefix(prefix) => path.strip_prefix(&**prefix).unwrap_or_default(),
            Self::Template { segments, .. } => {
                let mut slashes = path.match_indices('/').skip(segments.len());
                let start = slashes.next().map_or(path.len(), |(at, _)| at);
                path.get(start..).unwrap_or_default()
            }
        }
    }

    fn segments(&self) -> &[PathSegment] {
        match self {
            Self::Template { segments, .. } => segments,
            _ => &[],
        }
    }
}

// === impl PathSegment ===

impl PathSegment {
    fn name(&self) -> Option<&str> {
        match self {
            Self::Literal(_) => None,
            Self::Variable(name) => Some(name),
        }
    }
}

fn fits(segments: &[PathSegment], open: bool, path: &str) -> bool {
    let Some(path) = path.strip_prefix('/') else {
        return false;
    };
    let mut found = path.split('/');
    let all = segments
        .iter()
        .all(|segment| match (segment, found.next()) {
            (PathSegment::Literal(literal), Some(text)) => text == &**literal,
            (PathSegment::Variable(_), Some(text)) => !text.is_empty(),
            (_, None) => false,
        });
    all && (open || found.next().is_none())
}

fn segment(text: &str) -> Result<PathSegment, String> {
    let name = text.strip_prefix('{').and_then(|t| t.strip_suffix('}'));
    match name {
        Some(name) if is_name(name) => Ok(PathSegment::Variable(name.into())),
        None if !text.contains(['{', '}']) => Ok(PathSegment::Literal(text.into())),
        _ => Err(format!(
            "`{text}` is not a placeholder; one is a whole segment, as in `/orders/{{id}}`"
        )),
    }
}

fn is_name(name: &str) -> bool {
    let may = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.bytes().all(may)
}

/// Whether a path looks like a regex: `.*` and `[0-9]` do; `(a)` and `$` are valid in a path.
fn is_regex(path: &str) -> bool {
    path.contains(".*") || path.contains('[') && path.contains(']')
}

/// Checks a template: only one in normal form can ever match.
fn check(text: &str, path: &str) -> Result<(), String> {
    if text.starts_with(['^', '~']) || text.starts_with('/') && is_regex(path) {
        return Err(format!(
            "`{text}` looks like a regular expression, which routes do not support; `/api/*` is a \
             prefix, `/orders/{{id}}` a template"
        ));
    }
    if let Some(ending) = text.strip_prefix('*').filter(|ending| !ending.is_empty()) {
        return Err(format!(
            "`{text}` is not a path; routes cannot match path endings, but rules can: \
             `ends_with(http.request.uri.path, \"{ending}\")`"
        ));
    }
    if !text.starts_with('/') {
        return Err(format!("`{text}` is not a path; it starts with `/`"));
    }
    if path.contains('*') {
        return Err(format!(
            "`*` in `{text}` is allowed only at the end, after a `/`, as in `/api/*`"
        ));
    }
    let plain = path.replace(['{', '}'], "");
    match path::normalise(&plain) {
        Ok(normal) if *normal == *plain => Ok(()),
        Err(path::PathError::Relative) if plain.is_empty() => Ok(()),
        Ok(normal) if !path.contains('{') => Err(format!(
            "`{path}` can never match; its normal form is `{normal}`"
        )),
        Ok(_) => Err(format!(
            "`{path}` can never match; it is not in normal form"
        )),
        Err(_) => Err(format!(
            "`{path}` can never match; the gateway refuses such a path"
        )),
    }
}
