//! Calls: the arguments against the table of functions. A function of `list[*]` is a function of
//! each value.

use super::super::ast::Node;
use super::super::function::{FunctionSpec, Param, function, functions};
use super::super::suggest::nearest;
use super::super::term::{Bytes, Int, Source, Term, words};
use super::{Checker, Shape, Span};

// === impl Checker ===

impl Checker<'_> {
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
        let Some(build) = spec.build else {
            return self.fail(name_span, format!("`{name}` does not work yet"));
        };
        self.arity(spec, span, args.len())?;
        let mut source = None;
        let terms: Vec<Option<Term>> = (args.iter().enumerate())
            .map(|(at, node)| self.argument(spec, at, node, &mut source))
            .collect();
        let terms = terms.into_iter().collect::<Option<Vec<Term>>>()?;
        match (build(terms), source) {
            (Ok(Term::List(..)), Some(_)) => {
                let message = format!("`{name}` of many values would be a list of lists");
                self.fail_with(span, message, "take one of them, as in `[0]`")
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

    fn no_function(&mut self, name: &str, span: &Span) -> Option<Shape> {
        if self.env.scheme.field(name).is_some() {
            return self.fail(span, format!("`{name}` is a field, not a function"));
        }
        match nearest(name, functions().iter().map(|spec| spec.name)) {
            Some(near) => self.fail(
                span,
                format!("unknown function `{name}`; did you mean `{near}`?"),
            ),
            None => self.fail_with(
                span,
                format!("unknown function `{name}`"),
                "`lockgate fields` lists them all",
            ),
        }
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
            (least, usize::MAX) => format!("{least} argument or more"),
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
        let term = match (self.node(node)?, param) {
            (Shape::Each(list, Term::Bool(test)), Param::Tests)
            | (Shape::List(list, Term::Bool(test)), Param::Tests) => Term::Many(list, test),
            (Shape::Map(_) | Shape::One(_), Param::Tests) => return self.not_tests(spec, node),
            (shape, Param::Tests) => return self.not_compared(shape, node),
            (Shape::List(list, _), Param::Measured) => Term::Int(Int::Count(list)),
            (Shape::List(list, term), Param::Joined) => Term::List(list, Box::new(term)),
            (Shape::Each(list, term), _) if at == 0 => {
                *source = Some(list);
                term
            }
            (Shape::Each(..), _) => {
                return self.fail(&node.span, "`[*]` stands only in the first argument");
            }
            (shape, _) => self.single(shape, &node.span)?,
        };
        match fits(&term, param) {
            true => Some(term),
            false => self.unfit(spec, param, &term, node),
        }
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
        let wants = match param {
            Param::Text | Param::Measured | Param::Tests => "a string",
            Param::Quoted => "a string in quotes",
            Param::Number => "a written integer",
            Param::Address => "an address",
            Param::Scalar => "a single value",
            Param::Joined => "a list",
        };
        let text = self.text(&node.span);
        let message = format!(
            "`{}` takes {wants} here; `{text}` is {}",
            spec.name,
            describe(term, param)
        );
        self.fail_with(&node.span, message, format!("write `{}`", spec.signature))
    }
}

fn fits(term: &Term, param: Param) -> bool {
    match param {
        Param::Text => matches!(term, Term::Bytes(_)),
        Param::Quoted => matches!(term, Term::Bytes(Bytes::Literal(_))),
        Param::Number => matches!(term, Term::Int(Int::Literal(_))),
        Param::Address => matches!(term, Term::Ip(_)),
        Param::Scalar => !matches!(term, Term::Many(..) | Term::List(..)),
        Param::Joined => matches!(term, Term::List(..)),
        Param::Measured => matches!(term, Term::Bytes(_) | Term::Int(Int::Count(_))),
        Param::Tests => matches!(term, Term::Many(..)),
    }
}

fn describe(term: &Term, param: Param) -> &'static str {
    match (term, param) {
        (Term::Bytes(_), Param::Quoted) | (Term::Int(_), Param::Number) => "not written out",
        (term, _) => words(term.ty()),
    }
}
