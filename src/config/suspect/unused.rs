//! What nothing names, and routes that no request reaches.

use super::Warnings;
use crate::config::Text;
use crate::config::file::{File, Route, Target};
use crate::expr::{self, Relation};
use crate::route::{HostPattern, PathPattern, Segment};

/// Warns of lists, responses and upstreams without a use, and of routes behind wider ones.
pub(super) fn warn(file: &File, warnings: &mut Warnings<'_>) {
    let lists = lists_used(file);
    for list in &file.lists {
        unused(
            "list",
            &list.name,
            lists.contains(&list.name.value),
            warnings,
        );
    }
    for response in &file.responses {
        let named = |rule: &&Text| rule.value == response.name.value;
        let mut rules = file.rules.iter().filter_map(|rule| rule.response.as_ref());
        unused(
            "response",
            &response.name,
            rules.any(|rule| named(&rule)),
            warnings,
        );
    }
    for upstream in &file.upstreams {
        let by_route = file.routes.iter().any(|route| match &route.target {
            Some(Target::Upstream(name)) => name.value == upstream.name.value,
            _ => false,
        });
        let mut rules = file.rules.iter().filter_map(|rule| rule.upstream.as_ref());
        let used = by_route || rules.any(|name| name.value == upstream.name.value);
        unused("upstream", &upstream.name, used, warnings);
    }
    routes(file, warnings);
}

fn unused(what: &str, name: &Text, used: bool, warnings: &mut Warnings<'_>) {
    if !used {
        let message = format!("nothing uses the {what} `{}`", name.value);
        let warning = warnings.at(name.span.clone(), message);
        warning.help(match (what, &*name.value) {
            ("list", "include") => "to include files, put it before the first `[section]`",
            _ => "remove it",
        });
    }
}

/// The lists that any rule names, enabled or not.
fn lists_used(file: &File) -> Vec<String> {
    let expressions = file.rules.iter();
    let expressions = expressions.flat_map(|rule| rule.count.iter().chain(&rule.mitigate));
    let mut used = Vec::new();
    for outline in expressions.filter_map(|text| expr::outline(&text.value).ok()) {
        for leaf in outline.leaves() {
            if let Relation::InList(name) = &leaf.relation {
                used.push(name.to_string());
            }
        }
    }
    used
}

fn routes(file: &File, warnings: &mut Warnings<'_>) {
    for (at, route) in file.routes.iter().enumerate() {
        let earlier = file.routes.get(..at).unwrap_or_default();
        if let Some(other) = earlier.iter().find(|other| hides(other, route)) {
            let file = |route: &Route| warnings.source.part(route.span.start).start;
            let help = match file(route) == file(other) {
                true => "the first match wins: put the narrower route first",
                false => "routes come in the order of the files: put the wider one into the last",
            };
            warnings
                .at(route.span.clone(), "no request reaches this route")
                .related(other.span.clone(), "this one takes them all")
                .help(help);
        }
        if let Some(prefix) = &route.strip_prefix
            && !may_begin(route, &prefix.value)
        {
            let message = format!("no path of this route begins with `{}`", prefix.value);
            let warning = warnings.at(prefix.span.clone(), message);
            if let Some(path) = &route.path {
                warning.related(path.span.clone(), "its paths");
            }
        }
    }
}

/// Whether a path that the route takes can begin with these segments.
fn may_begin(route: &Route, prefix: &str) -> bool {
    let path = route.path.as_ref().map_or("/*", |path| &path.value);
    let (path, open) = match path.strip_suffix("/*") {
        Some(path) => (path, true),
        None => (path, false),
    };
    let mut own = path.split('/');
    prefix.split('/').all(|wanted| match own.next() {
        Some(segment) => segment == wanted || segment.starts_with('{'),
        None => open,
    })
}

fn hides(wide: &Route, narrow: &Route) -> bool {
    let path = |route: &Route| match &route.path {
        Some(path) => PathPattern::parse(&path.value).ok(),
        None => Some(PathPattern::Any),
    };
    let paths = path(wide).zip(path(narrow));
    paths.is_some_and(|(wide, narrow)| path_hides(&wide, &narrow)) && hosts_hide(wide, narrow)
}

fn path_hides(wide: &PathPattern, narrow: &PathPattern) -> bool {
    let (path, open) = match narrow {
        _ if *wide == PathPattern::Any => return true,
        PathPattern::Any => return false,
        PathPattern::Exact(path) => (path.to_string(), false),
        PathPattern::Prefix(path) => (path.to_string(), true),
        PathPattern::Template { segments, open } => (sample(segments), *open),
    };
    // What takes a path and one below takes all below.
    wide.matches(&path) && (!open || wide.matches(&format!("{path}/{ANY}")))
}

/// A segment that only a variable can take: no path holds it.
const ANY: &str = "\0";

fn sample(segments: &[Segment]) -> String {
    let text = |segment: &Segment| match segment {
        Segment::Literal(text) => format!("/{text}"),
        Segment::Variable => format!("/{ANY}"),
    };
    segments.iter().map(text).collect()
}

fn hosts_hide(wide: &Route, narrow: &Route) -> bool {
    let patterns = |route: &Route| -> Option<Vec<HostPattern>> {
        let hosts = route.hosts.iter();
        hosts
            .map(|host| HostPattern::parse(&host.value).ok())
            .collect()
    };
    let (Some(wide), Some(narrow)) = (patterns(wide), patterns(narrow)) else {
        return false;
    };
    let hidden = |host: &HostPattern| wide.iter().any(|wide| host_hides(wide, host));
    wide.is_empty()
        || wide.contains(&HostPattern::Any)
        || !narrow.is_empty() && narrow.iter().all(hidden)
}

fn host_hides(wide: &HostPattern, narrow: &HostPattern) -> bool {
    use HostPattern::{Any, Below, Exact};
    let port = |wide: &Option<_>, narrow| wide.is_none() || wide == narrow;
    match (wide, narrow) {
        (Any, _) => true,
        (Exact(wide, a), Exact(narrow, b)) => wide == narrow && port(a, b),
        (Below(wide, a), Below(narrow, b)) => narrow.ends_with(&**wide) && port(a, b),
        (Below(wide, a), Exact(narrow, b)) => {
            narrow.len() > wide.len() && narrow.ends_with(&**wide) && port(a, b)
        }
        (_, Any) | (Exact(..), Below(..)) => false,
    }
}
