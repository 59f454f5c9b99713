//! `[[protect]]`: the settings of presets.

use std::ops::Range;
use std::time::Duration;

use super::protect_rules::{RuleOverride, overrides};
use super::rule::ratio;
use crate::config::expr_text::ExprText;
use crate::config::scalar::{
    SettingType, ValueError, between, boolean, choice, duration, filled, integer, method, text,
};
use crate::config::schema::{self, ValueSchema};
use crate::config::section::SectionReader;
use crate::config::suggest::either;
use crate::config::{Spanned, Text};

/// What a preset protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PresetKind {
    /// A login, against credential stuffing and password guessing.
    Login,
    /// Pages, against scraping.
    Pages,
    /// Actions of new accounts, such as invitations.
    Signup,
}

/// One of `[[protect]]`.
#[derive(Clone, Debug)]
pub struct ProtectSettings {
    /// The header of the section.
    pub span: Range<usize>,
    /// What it protects. `None` after an error.
    pub kind: Option<PresetKind>,
    /// The first part of the names of its rules. Default the kind.
    pub name: Text,
    /// The protected paths: exact, or a prefix if they end in `*`. At least one in a file without errors.
    pub path: Vec<Text>,
    /// The hosts. Empty for any host.
    pub host: Vec<Text>,
    /// The method of a login, a registration or an action. Default POST.
    pub method: Text,
    /// The user that a request names. `None` if the gateway does not know it.
    pub user: Option<PresetUser>,
    /// Selects responses that are failed logins. `None` for the default.
    pub failed: Option<ExprText>,
    /// Selects responses that are a success. `None` for the default.
    pub success: Option<ExprText>,
    /// The path whose response proves success. `None` for `path`.
    pub success_path: Option<Text>,
    /// The page with the form. `None` for the default; an empty text for no page.
    pub form_path: Option<Text>,
    /// What new accounts must not do in bulk.
    pub actions: Vec<Text>,
    /// The age until which a client counts as new. Default one day.
    pub young: Spanned<Duration>,
    /// The ratio of the alarm. `None` for the default of the kind.
    pub ratio: Option<Spanned<f64>>,
    /// The failures per minute that always raise the alarm. Default 80; 0 for none.
    pub ceiling: Spanned<u32>,
    /// The lifetime of the known-client cookie. `None` for the default.
    pub known: Option<Spanned<Duration>>,
    /// Matches the requests that the preset neither counts nor mitigates. `None` if the preset exempts no request.
    pub exempt: Option<ExprText>,
    /// Whether every new client is challenged. Default false.
    pub strict: Spanned<bool>,
    /// Whether clients can solve challenges. Default true.
    pub challenge: Spanned<bool>,
    /// Whether all rules only decide, log and count. Default false.
    pub dry_run: Spanned<bool>,
    /// The rule next to which the preset stands. `None` for the default position.
    pub position: Option<PresetPosition>,
    /// Overrides of single rules.
    pub rules: Vec<RuleOverride>,
}

/// How a preset finds the user of a request.
#[derive(Clone, Debug)]
pub struct PresetUser {
    /// The setting as written.
    pub source: UserSource,
    /// The span of the setting's value.
    pub span: Range<usize>,
}

/// The setting that names the user.
#[derive(Clone, Debug)]
pub enum UserSource {
    /// A field of an urlencoded form.
    Field(String),
    /// A name in a JSON document, or nested names.
    Json(Vec<String>),
    /// Any expression.
    Expression(ExprText),
}

/// Where a preset stands.
#[derive(Clone, Debug)]
pub enum PresetPosition {
    /// Directly before the rule with this name.
    Before(Text),
    /// Directly after the rule with this name.
    After(Text),
}

const KINDS: &[(&str, PresetKind)] = &[
    ("login", PresetKind::Login),
    ("pages", PresetKind::Pages),
    ("signup", PresetKind::Signup),
];

/// Settings that only some kinds have.
const OF_KINDS: &[(&str, &[PresetKind])] = {
    use PresetKind::{Login, Signup};
    &[
        ("method", &[Login, Signup]),
        ("user_field", &[Login, Signup]),
        ("user_json", &[Login, Signup]),
        ("user", &[Login, Signup]),
        ("failed", &[Login]),
        ("success", &[Login, Signup]),
        ("success_path", &[Login]),
        ("form_path", &[Login]),
        ("actions", &[Signup]),
        ("young", &[Signup]),
        ("ceiling", &[Login]),
        ("known", &[Login, Signup]),
        ("challenge", &[Login]),
    ]
};

const DAY: Duration = Duration::from_secs(86_400);
const LONGEST: Duration = Duration::from_secs(400 * 86_400);
const SHORTEST_YOUTH: Duration = Duration::from_secs(60);
const MOST_FAILURES: u32 = 1_000_000;
const LONGEST_NAME: usize = 40;

pub(super) fn protect(s: &mut SectionReader<'_, '_>) -> ProtectSettings {
    let kind = s.required("kind", choice(KINDS, &[]), "\"login\"");
    let kind = kind.map(|kind| kind.value);
    let protect = values(s, kind);
    for pair in [
        ["user_field", "user_json"],
        ["user_field", "user"],
        ["user_json", "user"],
        ["before", "after"],
    ] {
        s.apart("a preset", pair);
    }
    if let Some(kind) = kind {
        by_kind(s, kind);
        contradictions(s, kind, &protect);
    }
    protect
}

fn values(s: &mut SectionReader<'_, '_>, kind: Option<PresetKind>) -> ProtectSettings {
    let lifetime = || between(DAY, LONGEST, duration());
    let youth = between(SHORTEST_YOUTH, LONGEST, duration());
    ProtectSettings {
        span: s.span(),
        kind,
        name: name(s, kind),
        path: paths(s, "path"),
        host: s.one_or_several("host", filled()),
        method: s.or("method", method_name(), "POST"),
        user: user(s),
        failed: s.optional("failed", filled()).map(ExprText::written),
        success: s.optional("success", filled()).map(ExprText::written),
        success_path: s.optional("success_path", path()),
        form_path: s.optional("form_path", path_or_none()),
        actions: s.one_or_several("actions", path()),
        young: s.or("young", youth, DAY),
        ratio: s.optional("ratio", ratio()),
        ceiling: s.or("ceiling", integer(0..=MOST_FAILURES), 80u32),
        known: s.optional("known", lifetime()),
        exempt: s.optional("exempt", filled()).map(ExprText::written),
        strict: s.or("strict", boolean(), false),
        challenge: s.or("challenge", boolean(), true),
        dry_run: s.or("dry_run", boolean(), false),
        position: position(s),
        rules: s.table("rules", overrides).unwrap_or_default(),
    }
}

fn name(s: &mut SectionReader<'_, '_>, kind: Option<PresetKind>) -> Text {
    let Some(name) = s.optional("name", preset_name()) else {
        let name = kind.map_or("", PresetKind::name);
        return Spanned::new(name.to_owned(), s.span());
    };
    name
}

fn preset_name() -> SettingType<String> {
    SettingType::new(
        ValueSchema::string_of_form(schema::PRESET_NAME, &[]),
        |value| {
            let name = filled().parse(value)?;
            let valid = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
            if name.len() <= LONGEST_NAME && name.bytes().all(valid) {
                return Ok(name);
            }
            let wrong = ValueError::new(format!("`{name}` is not a valid name of a preset"));
            Err(wrong.help(format!(
                "a name has 1 to {LONGEST_NAME} letters, digits, `_` and `-`"
            )))
        },
    )
}

fn method_name() -> SettingType<String> {
    let name = method().map(|method| method.to_string());
    name.shown(|method| schema::ExampleValue::Text(method.clone()))
}

/// Reads the required paths of a preset.
fn paths(s: &mut SectionReader<'_, '_>, key: &'static str) -> Vec<Text> {
    let paths = s.one_or_several(key, path());
    let message = format!("`{key}` is empty");
    s.not_empty(key, &message, "for example `path = \"/login\"`");
    if s.lacks(key) {
        s.missing(key, "\"/login\"");
    }
    paths
}

/// A path, or a prefix that ends in `*`.
fn path() -> SettingType<String> {
    let shape = ValueSchema::string_of_form(schema::PRESET_PATH, &[]);
    SettingType::new(shape, |value| checked_path(filled().parse(value)?))
}

fn path_or_none() -> SettingType<String> {
    let shape = ValueSchema::string_of_form(schema::PRESET_PATH_OR_NONE, &[]);
    SettingType::new(shape, |value| {
        let written = text().parse(value)?;
        if written.is_empty() {
            Ok(written)
        } else {
            checked_path(written)
        }
    })
}

fn checked_path(written: String) -> Result<String, ValueError> {
    let body = written.strip_suffix('*').unwrap_or(&written);
    if body.contains('*') {
        let wrong = ValueError::new("`*` is allowed only at the end of a path");
        return Err(wrong.help("for example \"/product/*\" for all paths below `/product/`"));
    }
    if !written.starts_with('/') {
        let wrong = ValueError::new(format!("the path `{written}` does not start with `/`"));
        return Err(wrong.help(format!("write \"/{written}\"")));
    }
    let is_plain = |c: char| !c.is_control() && !matches!(c, ' ' | '"' | '?' | '#' | '\\');
    if !written.chars().all(is_plain) {
        let wrong = ValueError::new(format!("`{}` is not a path", written.escape_debug()));
        return Err(wrong.help("write the path as it is in the request, without a query"));
    }
    Ok(written)
}

fn user(s: &mut SectionReader<'_, '_>) -> Option<PresetUser> {
    let field = s.optional("user_field", filled());
    let json = s.one_or_several("user_json", filled());
    let expression = s.optional("user", filled());
    if let Some(field) = field {
        let source = UserSource::Field(field.value);
        let span = field.span;
        return Some(PresetUser { source, span });
    }
    if let (Some(first), Some(last)) = (json.first(), json.last()) {
        let span = first.span.start..last.span.end;
        let names = json.iter().map(|name| name.value.clone());
        let source = UserSource::Json(names.collect());
        return Some(PresetUser { source, span });
    }
    let expression = expression?;
    let span = expression.span.clone();
    let source = UserSource::Expression(ExprText::written(expression));
    Some(PresetUser { source, span })
}

fn position(s: &mut SectionReader<'_, '_>) -> Option<PresetPosition> {
    let before = s.optional("before", filled()).map(PresetPosition::Before);
    let after = s.optional("after", filled()).map(PresetPosition::After);
    before.or(after)
}

/// Refuses the settings that the kind does not have.
fn by_kind(s: &mut SectionReader<'_, '_>, kind: PresetKind) {
    for (key, kinds) in OF_KINDS {
        if let Some(span) = s.key_span(key).filter(|_| !kinds.contains(&kind)) {
            let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
            s.out
                .error(span, format!("`{key}` does not apply to `{}`", kind.name()))
                .help(format!("remove it: it applies only to {}", either(&names)));
        }
    }
}

fn contradictions(s: &mut SectionReader<'_, '_>, kind: PresetKind, protect: &ProtectSettings) {
    if kind == PresetKind::Login && !protect.challenge.value && protect.strict.value {
        s.out
            .error(
                protect.challenge.span.clone(),
                "`challenge = false` contradicts `strict = true`",
            )
            .related(protect.strict.span.clone(), "challenges every new client")
            .help("remove one of them");
    }
    let is_idle = kind == PresetKind::Signup && !s.has("actions") && !protect.strict.value;
    if is_idle && !s.is_misspelt("actions") {
        s.none(
            &["actions"],
            "a preset of kind `signup` needs `actions`, or `strict = true`",
            "for example `actions = [\"/invite\"]`",
        );
    }
}

// === impl ProtectSettings ===

impl ProtectSettings {
    /// Returns every expression that is written.
    pub fn expressions(&self) -> impl Iterator<Item = &ExprText> {
        let user = match self.user.as_ref().map(|user| &user.source) {
            Some(UserSource::Expression(text)) => Some(text),
            _ => None,
        };
        let tests = [&self.failed, &self.success, &self.exempt];
        tests.into_iter().flatten().chain(user)
    }

    /// Calls `visit` with every expression.
    pub(super) fn each_expression(&mut self, visit: &mut impl FnMut(&mut ExprText)) {
        let written = [&mut self.failed, &mut self.success, &mut self.exempt];
        written.into_iter().flatten().for_each(&mut *visit);
        if let Some(PresetUser {
            source: UserSource::Expression(text),
            ..
        }) = &mut self.user
        {
            visit(text);
        }
    }
}

// === impl PresetKind ===

impl PresetKind {
    /// The name in the file.
    pub const fn name(self) -> &'static str {
        match self {
            PresetKind::Login => "login",
            PresetKind::Pages => "pages",
            PresetKind::Signup => "signup",
        }
    }
}
