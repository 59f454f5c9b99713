//! Names to fields and functions, and the arguments of calls against the table of functions. A
//! function of `list[*]` is a function of each value.

use super::super::ast::{Base, LiteralKind, Node, NodeKind, Op};
use super::super::function::{Args, FunctionSpec, Param, function, functions, nearest_to_missing};
use super::super::mistake::{did_you_mean, nearest};
use super::super::term::{Bytes, Each, Int, Ip, Source, Term, Test};
use super::super::{FieldSpec, Phase};
use super::{Checker, Shape, Span, Type, bool};

// === impl Checker ===

impl Checker<'_> {
    pub(super) fn field(&mut self, name: &str, span: &Span) -> Option<Shape> {
        let Some(spec) = self.env.scheme.field(name) else {
            return match self.env.scheme.refusal(name) {
                Some(refusal) => self.fail(span, refusal),
                None => self.no_field(name, span),
            };
        };
        if spec.phase == Phase::Response && !self.env.allow_response {
            let message = format!("`{name}` is known only after the answer; use it in `count`");
            return self.fail(span, message);
        }
        self.reads.fields.push(spec.id);
        self.reads.response |= spec.phase == Phase::Response;
        Some(match spec.ty {
            Type::Bytes => Shape::One(Term::Bytes(Bytes::Field(spec.id))),
            Type::Int => Shape::One(Term::Int(Int::Field(spec.id))),
            Type::Ip => Shape::One(Term::Ip(Ip::Field(spec.id))),
            Type::Bool => bool(Test::Field(spec.id, true)),
            Type::Array => values(&spec, None),
            Type::Map => Shape::Map(spec),
        })
    }

    fn no_field(&mut self, name: &str, span: &Span) -> Option<Shape> {
        if name.starts_with('$') {
            return self.fail(span, "a set or a list stands after `in`");
        }
        if function(name).is_some() {
            return self.fail(span, format!("`{name}` is a function; write `{name}(…)`"));
        }
        let fields = self.env.scheme.names();
        let known = fields
            .into_iter()
            .chain(functions().iter().map(|spec| spec.name));
        let near = did_you_mean(name, known);
        let help = "`lockgate fields` lists them all; strings stand in double quotes";
        let help = near.is_empty().then(|| help.to_owned());
        self.report(span, format!("unknown field `{name}`{near}"), help)
    }

    /// The list of values that a map has under `name`.
    pub(super) fn entry(&mut self, spec: &FieldSpec, name: &[u8], span: &Span) -> Option<Shape> {
        let Ok(text) = std::str::from_utf8(name) else {
            return self.fail(span, "the name of an entry must be UTF-8");
        };
        let text = match spec.names_ignore_case {
            true => text.to_ascii_lowercase(),
            false => text.to_owned(),
        };
        let name = Some(text.as_bytes().into());
        let entry = (spec.id, text.into_boxed_str());
        if !self.reads.entries.contains(&entry) {
            self.reads.entries.push(entry);
        }
        Some(values(spec, name))
    }

    pub(super) fn call(
        &mut self,
        name: &str,
        name_span: &Span,
        span: &Span,
        args: &[Node],
    ) -> Option<Shape> {
        let Some(spec) = function(name) else {
            return self.no_function(name, name_span);
        };
        self.arity(spec, span, args.len())?;
        let mut source = None;
        let terms: Vec<Option<Term>> = (args.iter().enumerate())
            .map(|(at, node)| self.argument(spec, at, node, &mut source))
            .collect();
        let terms = terms.into_iter().collect::<Option<Vec<Term>>>()?;
        let terms = self.named(terms, span)?;
        match ((spec.build)(Args::new(terms)), source) {
            (Ok(Term::List(..)), Some(_)) => {
                let message = format!("`{name}` of many values would be a list of lists");
                self.fail_with(
                    span,
                    message,
                    "take one value, with `[0]` in the place of `[*]`",
                )
            }
            (Ok(Term::List(source, term)), None) => Some(Shape::List(source, *term)),
            (Ok(term), Some(source)) => Some(Shape::List(source, term)),
            (Ok(term), None) => Some(Shape::One(term)),
            (Err((at, message)), _) => {
                let blamed = args.get(at).map_or(span, |node| &node.span);
                self.fail(blamed, message)
            }
        }
    }

    /// A map and a name are the list of the entry's values.
    fn named(&mut self, mut terms: Vec<Term>, span: &Span) -> Option<Vec<Term>> {
        if let [Term::Map(map), Term::Bytes(Bytes::Literal(name))] = &*terms
            && let Shape::List(source, each) = self.entry(map, name, span)?
            && let Some(first) = terms.first_mut()
        {
            *first = Term::List(source, Box::new(each));
        }
        Some(terms)
    }

    fn no_function(&mut self, name: &str, span: &Span) -> Option<Shape> {
        if self.env.scheme.field(name).is_some() {
            return self.fail(span, format!("`{name}` is a field, not a function"));
        }
        if let Some(near) = nearest_to_missing(name) {
            let message = format!("Cloudflare's `{name}` does not exist here; nearest: {near}");
            return self.fail(span, message);
        }
        if let Some(help) = self.of_a_method(name) {
            return self.fail_with(span, format!("unknown function `{name}`"), help);
        }
        let near = did_you_mean(name, functions().iter().map(|spec| spec.name));
        let help = near
            .is_empty()
            .then(|| "`lockgate fields` lists them all".to_owned());
        self.report(span, format!("unknown function `{name}`{near}"), help)
    }

    /// What `http.host.startsWith(…)` is here.
    fn of_a_method(&self, name: &str) -> Option<String> {
        let (field, method) = name.rsplit_once('.')?;
        self.env.scheme.field(field)?;
        let mut own = String::new();
        for c in method.chars() {
            if c.is_ascii_uppercase() {
                own.push('_');
            }
            own.push(c.to_ascii_lowercase());
        }
        Some(match Op::spelt(&own) {
            Some(_) => format!("write `{field} {own} \"…\"`"),
            None => {
                let known = functions().iter().map(|spec| spec.name);
                format!("write `{}({field}, …)`", nearest(&own, known)?)
            }
        })
    }

    fn arity(&mut self, spec: &FunctionSpec, span: &Span, given: usize) -> Option<()> {
        let most = if spec.repeats {
            usize::MAX
        } else {
            spec.params.len()
        };
        let least = spec.params.len() - spec.optional;
        if (least..=most).contains(&given) {
            return Some(());
        }
        let wants = match (least, most) {
            (1, 1) => "1 argument".into(),
            (1, usize::MAX) => "1 argument or more".into(),
            (least, usize::MAX) => format!("{least} arguments or more"),
            (least, most) if least == most => format!("{least} arguments"),
            (least, most) => format!("{least} or {most} arguments"),
        };
        let message = format!("`{}` takes {wants}, not {given}", spec.name);
        self.fail_with(span, message, format!("write `{}`", spec.signature))
    }

    /// One argument as a term. The source of a `[*]` in the first one is put into `source`.
    fn argument(
        &mut self,
        spec: &FunctionSpec,
        at: usize,
        node: &Node,
        source: &mut Option<Source>,
    ) -> Option<Term> {
        let param = *spec.params.get(at).or(spec.params.last())?;
        if param == Param::Regex {
            return self.regex_argument(spec, node);
        }
        let outer = std::mem::replace(&mut self.many, param == Param::Tests);
        let outer_kept = std::mem::take(&mut self.kept);
        let shape = self.node(node);
        self.many = outer;
        let kept = std::mem::replace(&mut self.kept, outer_kept);
        let term = match (shape?, param) {
            (Shape::Each(list, Term::Bool(test)), Param::Tests)
            | (Shape::List(list, Term::Bool(test)), Param::Tests) => {
                Term::Many(list, Each { test, kept })
            }
            (Shape::Map(_) | Shape::One(_), Param::Tests) => return self.not_tests(spec, node),
            (shape, Param::Tests) => return self.not_compared(shape, node),
            (Shape::List(list, _), Param::Measured) => Term::Int(Int::Count(list)),
            (Shape::Map(map), Param::Map) => Term::Map(map),
            (Shape::Map(map), Param::Values) => {
                let list = Source::Field {
                    field: map.id,
                    name: None,
                };
                Term::List(list, Box::new(Term::Bytes(Bytes::Item)))
            }
            (Shape::List(list, term), Param::Joined | Param::Map | Param::Values) => {
                Term::List(list, Box::new(term))
            }
            (Shape::List(list, term), Param::Part) if !self.is_first(&list) => {
                Term::List(list, Box::new(term))
            }
            (Shape::Each(list, term), _) if at == 0 => {
                *source = Some(list);
                term
            }
            (Shape::Each(..), _) => {
                return self.fail(&node.span, "`[*]` stands only in the first argument");
            }
            (shape, _) => self.single(shape, &node.span)?,
        };
        match wanted(param).1(&term) {
            true => Some(term),
            false => self.unfit(spec, param, &term, node),
        }
    }

    fn regex_argument(&mut self, spec: &FunctionSpec, node: &Node) -> Option<Term> {
        if let NodeKind::Alone(operand) = &node.kind
            && let Base::Literal(literal) = &operand.base
            && let LiteralKind::Text { bytes, .. } = &literal.kind
            && operand.path.is_empty()
        {
            return self.regex(bytes, literal).map(Term::Regex);
        }
        let text = self.text(&node.span);
        let message = format!(
            "`{}` takes a regex in quotes here; `{text}` is not written out",
            spec.name
        );
        self.fail_with(&node.span, message, format!("write `{}`", spec.signature))
    }

    fn not_tests(&mut self, spec: &FunctionSpec, node: &Node) -> Option<Term> {
        let help = format!(
            "write `{}(http.request.headers[\"name\"][*] eq \"…\")`",
            spec.name
        );
        let message = format!("`{}` needs a test of many values, with `[*]`", spec.name);
        self.fail_with(&node.span, message, help)
    }

    fn not_compared(&mut self, shape: Shape, node: &Node) -> Option<Term> {
        let text = self.text(&node.span);
        let unpacked = if matches!(shape, Shape::Each(..)) {
            ""
        } else {
            "[*]"
        };
        let help = format!("compare it, as in `{text}{unpacked} eq \"…\"`");
        self.fail_with(&node.span, format!("`{text}` is not a test"), help)
    }

    fn unfit(
        &mut self,
        spec: &FunctionSpec,
        param: Param,
        term: &Term,
        node: &Node,
    ) -> Option<Term> {
        let (wants, _) = wanted(param);
        let text = self.text(&node.span);
        let message = format!(
            "`{}` takes {wants} here; `{text}` is {}",
            spec.name,
            describe(term, param)
        );
        self.fail_with(&node.span, message, format!("write `{}`", spec.signature))
    }
}

/// What a parameter takes, in words, and whether a term is that.
fn wanted(param: Param) -> (&'static str, fn(&Term) -> bool) {
    use Term::{Bytes as Text, Ip as Address, List, Many};
    match param {
        Param::Text => ("a string", |term| matches!(term, Text(_))),
        Param::Tests => ("a string", |term| matches!(term, Many(..))),
        Param::Measured => ("a string or a list", |term| {
            matches!(term, Text(_) | Term::Int(Int::Count(_)))
        }),
        Param::Quoted => ("a string in quotes", |term| {
            matches!(term, Text(Bytes::Literal(_)))
        }),
        Param::Regex => ("a string in quotes", |term| matches!(term, Term::Regex(_))),
        Param::Number => ("a written integer", |term| {
            matches!(term, Term::Int(Int::Literal(_)))
        }),
        Param::Step => ("a name in quotes or a place", |term| {
            matches!(term, Text(Bytes::Literal(_)) | Term::Int(Int::Literal(_)))
        }),
        Param::Address => ("an address", |term| matches!(term, Address(_))),
        Param::Scalar => ("a single value", |term| {
            !matches!(term, Many(..) | List(..))
        }),
        Param::Part => ("a single value", |term| !matches!(term, Many(..))),
        Param::Joined => ("a list", |term| matches!(term, List(..))),
        Param::Map => ("a map", |term| matches!(term, Term::Map(_))),
        Param::Values => ("a map or a list", |term| matches!(term, List(..))),
    }
}

fn describe(term: &Term, param: Param) -> &'static str {
    match (term, param) {
        (Term::Bytes(_), Param::Quoted | Param::Step)
        | (Term::Int(_), Param::Number | Param::Step) => "not written out",
        (term, _) => term.ty().words(),
    }
}

/// The values of an array, of a map's entry or, without a name, of all its entries.
pub(super) fn values(spec: &FieldSpec, name: Option<Box<[u8]>>) -> Shape {
    let field = spec.id;
    Shape::List(Source::Field { field, name }, Term::Bytes(Bytes::Item))
}
