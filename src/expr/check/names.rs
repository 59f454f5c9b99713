//! Resolves names to fields and functions, and checks the arguments of calls against the function
//! table. A function of `list[*]` applies to each value.

use super::super::ast::{CompareOp, ExprNode, LiteralKind, NodeKind, OperandBase};
use super::super::error::{did_you_mean, nearest};
use super::super::function::{
    CallArgs, FunctionSpec, ParamType, function, functions, nearest_to_missing,
};
use super::super::term::{
    BoolTerm, BytesTerm, CompiledTerm, EachTerm, IntTerm, IpTerm, StringSource,
};
use super::super::{FieldId, FieldSpec, Phase};
use super::{Checker, OperandShape, Span, ValueType, bool};

// === impl Checker ===

impl Checker<'_> {
    pub(super) fn field(&mut self, name: &str, span: &Span) -> Option<OperandShape> {
        let Some(spec) = self.env.scheme.field(name) else {
            return match self.env.scheme.refusal(name) {
                Some(refusal) => self.fail(span, refusal),
                None => self.no_field(name, span),
            };
        };
        if spec.phase == Phase::Response && !self.env.allow_response {
            let message =
                format!("`{name}` is known only in the response phase; use it in `count`");
            return self.fail(span, message);
        }
        self.reads.fields.push(spec.id);
        self.reads.response |= spec.phase == Phase::Response;
        Some(match spec.ty {
            ValueType::Bytes => OperandShape::One(CompiledTerm::Bytes(BytesTerm::Field(spec.id))),
            ValueType::Int => OperandShape::One(CompiledTerm::Int(IntTerm::Field(spec.id))),
            ValueType::Ip => OperandShape::One(CompiledTerm::Ip(IpTerm::Field(spec.id))),
            ValueType::Bool => bool(BoolTerm::Field(spec.id, true)),
            ValueType::Array => values(spec.id, None),
            ValueType::Map => OperandShape::Map(spec),
        })
    }

    fn no_field(&mut self, name: &str, span: &Span) -> Option<OperandShape> {
        if name.starts_with('$') {
            return self.fail(span, "a set or a list is allowed only after `in`");
        }
        if function(name).is_some() {
            return self.fail(span, format!("`{name}` is a function; write `{name}(…)`"));
        }
        let fields = self.env.scheme.names();
        let known = fields
            .into_iter()
            .chain(functions().iter().map(|spec| spec.name));
        let near = did_you_mean(name, known);
        let help = "`lockgate fields` lists them all; strings need double quotes";
        let help = near.is_empty().then(|| help.to_owned());
        self.report(span, format!("unknown field `{name}`{near}"), help)
    }

    /// What a map has under `name`.
    pub(super) fn entry(
        &mut self,
        spec: &FieldSpec,
        name: &[u8],
        span: &Span,
    ) -> Option<OperandShape> {
        let Ok(text) = std::str::from_utf8(name) else {
            return self.fail(span, "the name of an entry must be UTF-8");
        };
        let text = if spec.names_ignore_case {
            text.to_ascii_lowercase()
        } else {
            text.to_owned()
        };
        let name = text.as_bytes().into();
        let entry = (spec.id, text.into_boxed_str());
        if !self.reads.entries.contains(&entry) {
            self.reads.entries.push(entry);
        }
        Some(if spec.entries_are_strings {
            OperandShape::Entry(spec.id, name)
        } else {
            values(spec.id, Some(name))
        })
    }

    pub(super) fn call(
        &mut self,
        name: &str,
        name_span: &Span,
        span: &Span,
        args: &[ExprNode],
    ) -> Option<OperandShape> {
        let Some(spec) = function(name) else {
            return self.no_function(name, name_span);
        };
        self.arity(spec, span, args.len())?;
        let mut source = None;
        let terms: Vec<Option<CompiledTerm>> = (args.iter().enumerate())
            .map(|(at, node)| self.argument(spec, at, node, &mut source))
            .collect();
        let terms = terms.into_iter().collect::<Option<Vec<CompiledTerm>>>()?;
        let terms = self.named(terms, span)?;
        match ((spec.build)(CallArgs::new(terms)), source) {
            (Ok(CompiledTerm::List(..)), Some(_)) => {
                let message = format!("`{name}` of many values would be a list of lists");
                self.fail_with(span, message, "take one value, with `[0]` instead of `[*]`")
            }
            (Ok(CompiledTerm::List(source, term)), None) => Some(OperandShape::List(source, *term)),
            (Ok(term), Some(source)) => Some(OperandShape::List(source, term)),
            (Ok(term), None) => Some(OperandShape::One(term)),
            (Err((at, message)), _) => {
                let blamed_span = args.get(at).map_or(span, |node| &node.span);
                self.fail(blamed_span, message)
            }
        }
    }

    /// Replaces the arguments map and name by the list of the entry's values.
    fn named(&mut self, mut terms: Vec<CompiledTerm>, span: &Span) -> Option<Vec<CompiledTerm>> {
        if let [
            CompiledTerm::Map(map),
            CompiledTerm::Bytes(BytesTerm::Literal(name)),
        ] = &*terms
            && let OperandShape::List(source, each) = self.entry(map, name, span)?.or_list()
            && let Some(first) = terms.first_mut()
        {
            *first = CompiledTerm::List(source, Box::new(each));
        }
        Some(terms)
    }

    fn no_function(&mut self, name: &str, span: &Span) -> Option<OperandShape> {
        if self.env.scheme.field(name).is_some() {
            return self.fail(span, format!("`{name}` is a field, not a function"));
        }
        if let Some(near) = nearest_to_missing(name) {
            let message =
                format!("Cloudflare's `{name}` does not exist in lockgate; nearest: {near}");
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

    /// The equivalent of a method call such as `http.host.startsWith(…)`.
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
        Some(match CompareOp::spelt(&own) {
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
        self.fail_with(span, message, spec.usage())
    }

    /// Checks one argument. A `[*]` in the first argument is stored in `source`.
    fn argument(
        &mut self,
        spec: &FunctionSpec,
        at: usize,
        node: &ExprNode,
        source: &mut Option<StringSource>,
    ) -> Option<CompiledTerm> {
        let param = *spec.params.get(at).or(spec.params.last())?;
        if param == ParamType::Regex {
            return self.regex_argument(spec, node);
        }
        self.has_quotes(spec, param, node).then_some(())?;
        let outer = std::mem::replace(&mut self.many, param == ParamType::Tests);
        let outer_kept = std::mem::take(&mut self.kept);
        let shape = self.node(node);
        self.many = outer;
        let kept = std::mem::replace(&mut self.kept, outer_kept);
        let term = match (read_by(param, shape?), param) {
            (OperandShape::Each(list, CompiledTerm::Bool(test)), ParamType::Tests)
            | (OperandShape::List(list, CompiledTerm::Bool(test)), ParamType::Tests) => {
                CompiledTerm::Many(list, EachTerm { test, kept })
            }
            (OperandShape::Map(_) | OperandShape::One(_), ParamType::Tests) => {
                return self.not_tests(spec, node);
            }
            (shape, ParamType::Tests) => return self.not_compared(shape, node),
            (OperandShape::List(list, _), ParamType::Measured) => {
                CompiledTerm::Int(IntTerm::Count(list))
            }
            (OperandShape::Map(map), ParamType::Map) => CompiledTerm::Map(map),
            (OperandShape::Map(map), ParamType::Values) => {
                let list = StringSource::Field {
                    field: map.id,
                    name: None,
                };
                CompiledTerm::List(list, Box::new(CompiledTerm::Bytes(BytesTerm::Item)))
            }
            (
                OperandShape::List(list, term),
                ParamType::Joined | ParamType::Map | ParamType::Values,
            ) => CompiledTerm::List(list, Box::new(term)),
            (OperandShape::List(list, term), ParamType::Part) if !self.is_first(&list) => {
                CompiledTerm::List(list, Box::new(term))
            }
            (OperandShape::Each(list, term), _) if at == 0 => {
                *source = Some(list);
                term
            }
            (OperandShape::Each(..), _) => {
                return self.fail(&node.span, "`[*]` is allowed only in the first argument");
            }
            (shape, _) => self.single(shape, &node.span)?,
        };
        if wanted(param).1(&term) {
            Some(term)
        } else {
            self.unfit(spec, param, &term, node)
        }
    }

    /// Reports a word without quotes where a name in quotes must be. Returns `true` for anything else.
    fn has_quotes(&mut self, spec: &FunctionSpec, param: ParamType, node: &ExprNode) -> bool {
        let NodeKind::Alone(operand) = &node.kind else {
            return true;
        };
        let OperandBase::Field(name) = &operand.base else {
            return true;
        };
        let is_word = operand.path.is_empty() && !name.starts_with('$');
        let is_known = self.env.scheme.field(name).is_some() || function(name).is_some();
        let lacks = is_word && !is_known && matches!(param, ParamType::Step | ParamType::Quoted);
        if lacks {
            let message = format!("`{}` takes a name in quotes here", spec.name);
            let help = format!("write `\"{name}\"`");
            self.fail_with::<()>(&node.span, message, help);
        }
        !lacks
    }

    fn regex_argument(&mut self, spec: &FunctionSpec, node: &ExprNode) -> Option<CompiledTerm> {
        if let NodeKind::Alone(operand) = &node.kind
            && let OperandBase::Literal(literal) = &operand.base
            && let LiteralKind::Text { bytes, .. } = &literal.kind
            && operand.path.is_empty()
        {
            return self.regex(bytes, literal).map(CompiledTerm::Regex);
        }
        let text = self.text(&node.span);
        let message = format!(
            "`{}` takes a regex in quotes here; `{text}` is not a literal",
            spec.name
        );
        self.fail_with(&node.span, message, spec.usage())
    }

    fn not_tests(&mut self, spec: &FunctionSpec, node: &ExprNode) -> Option<CompiledTerm> {
        let help = format!(
            "write `{}(http.request.headers[\"name\"][*] eq \"…\")`",
            spec.name
        );
        let message = format!("`{}` needs a test of many values, with `[*]`", spec.name);
        self.fail_with(&node.span, message, help)
    }

    fn not_compared(&mut self, shape: OperandShape, node: &ExprNode) -> Option<CompiledTerm> {
        let text = self.text(&node.span);
        let unpacked = if matches!(shape, OperandShape::Each(..)) {
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
        param: ParamType,
        term: &CompiledTerm,
        node: &ExprNode,
    ) -> Option<CompiledTerm> {
        let (wants, _) = wanted(param);
        let text = self.text(&node.span);
        let message = format!(
            "`{}` takes {wants} here; `{text}` is {}",
            spec.name,
            describe(term, param)
        );
        self.fail_with(&node.span, message, spec.usage())
    }
}

/// A map's entry as the parameter reads it: as a list if it accepts one.
fn read_by(param: ParamType, shape: OperandShape) -> OperandShape {
    match param {
        ParamType::Joined | ParamType::Map | ParamType::Values => shape.or_list(),
        _ => shape.or_string(),
    }
}

/// A description of what a parameter accepts, and the check for it.
fn wanted(param: ParamType) -> (&'static str, fn(&CompiledTerm) -> bool) {
    use CompiledTerm::{Bytes as Text, Ip as Address, List, Many};
    match param {
        ParamType::Text => ("a string", |term| matches!(term, Text(_))),
        ParamType::Tests => ("a string", |term| matches!(term, Many(..))),
        ParamType::Measured => ("a string or a list", |term| {
            matches!(term, Text(_) | CompiledTerm::Int(IntTerm::Count(_)))
        }),
        ParamType::Quoted => ("a string in quotes", |term| {
            matches!(term, Text(BytesTerm::Literal(_)))
        }),
        ParamType::Regex => ("a string in quotes", |term| {
            matches!(term, CompiledTerm::Regex(_))
        }),
        ParamType::Number => ("a literal integer", |term| {
            matches!(term, CompiledTerm::Int(IntTerm::Literal(_)))
        }),
        ParamType::Step => ("a name in quotes or a position", |term| {
            matches!(
                term,
                Text(BytesTerm::Literal(_)) | CompiledTerm::Int(IntTerm::Literal(_))
            )
        }),
        ParamType::Address => ("an address", |term| matches!(term, Address(_))),
        ParamType::Scalar => ("a single value", |term| {
            !matches!(term, Many(..) | List(..))
        }),
        ParamType::Part => ("a single value", |term| !matches!(term, Many(..))),
        ParamType::Joined => ("a list", |term| matches!(term, List(..))),
        ParamType::Map => ("a map", |term| matches!(term, CompiledTerm::Map(_))),
        ParamType::Values => ("a map or a list", |term| matches!(term, List(..))),
    }
}

fn describe(term: &CompiledTerm, param: ParamType) -> &'static str {
    match (term, param) {
        (CompiledTerm::Bytes(_), ParamType::Quoted | ParamType::Step)
        | (CompiledTerm::Int(_), ParamType::Number | ParamType::Step) => "not a literal",
        (term, _) => term.ty().words(),
    }
}

/// The values of an array, of a map's entry or, without a name, of all entries of a map.
pub(super) fn values(field: FieldId, name: Option<Box<[u8]>>) -> OperandShape {
    OperandShape::List(
        StringSource::Field { field, name },
        CompiledTerm::Bytes(BytesTerm::Item),
    )
}
