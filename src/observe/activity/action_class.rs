//! The classes of requests, for the rates in ticks and in the history.

use crate::decision::{Action, Decision, RuleEventKind};
use crate::rules::RuleSet;

named! {
    /// What happened to a request. Each request has exactly one class.
    pub enum ActionClass {
        /// No rule acted: the request was forwarded, or its route responded.
        Forward = "forward",
        /// A rule held the request, which was then forwarded.
        Delay = "delay",
        /// A rule tagged the request.
        Tag = "tag",
        /// A rule recorded the request.
        Log = "log",
        /// A rule refused the request.
        Block = "block",
        /// A rule sent a shadow response.
        Shadow = "shadow",
        /// A rule forwarded the request to another upstream.
        Divert = "divert",
        /// A rule held the request and then refused it.
        Tarpit = "tarpit",
        /// A rule closed the connection.
        Close = "close",
        /// A rule challenged the client.
        Challenge = "challenge",
        /// A rule allowed the request.
        Allow = "allow",
        /// The gateway itself generated the error.
        Own = "own",
    }
}

// === impl ActionClass ===

impl ActionClass {
    /// The number of classes.
    pub const COUNT: usize = Self::ALL.len();

    /// Returns the position in [`ActionClass::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns the class of a request with this decision: the terminal action, or else `delay`, `tag` or `log`, in
    /// this order. A dry run does not act.
    #[inline]
    pub fn of(decision: &Decision, rules: &RuleSet) -> Self {
        match &decision.decided_by {
            None => Self::Forward,
            Some(by) if by.action.is_terminal() && !by.dry_run => by.action.into(),
            Some(_) => Self::of_events(decision, rules),
        }
    }

    #[inline(never)]
    fn of_events(decision: &Decision, rules: &RuleSet) -> Self {
        let events = decision.events.iter();
        let acted = events.filter(|event| event.event == RuleEventKind::Mitigated);
        let classes = acted.filter_map(|event| Some(Self::from(rules.get(event.rule)?.action)));
        let preferred = classes.min_by_key(|class| class.index());
        preferred.unwrap_or(Self::Forward)
    }
}

impl From<Action> for ActionClass {
    fn from(action: Action) -> Self {
        match action {
            Action::Block => Self::Block,
            Action::Shadow => Self::Shadow,
            Action::Divert => Self::Divert,
            Action::Delay => Self::Delay,
            Action::Tarpit => Self::Tarpit,
            Action::Close => Self::Close,
            Action::Tag => Self::Tag,
            Action::Log => Self::Log,
            Action::Allow => Self::Allow,
            Action::Challenge => Self::Challenge,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::{DecidedBy, RuleEvent, RuleIndex};
    use crate::expr::{ExprEnv, NamedLists, predicate};
    use crate::facts::FieldTable;
    use crate::rules::{Rule, RuleId, RuleScope};

    fn rules(actions: &[Action]) -> RuleSet {
        let env = ExprEnv {
            scheme: &FieldTable,
            lists: &NamedLists::default(),
            allow_response: false,
        };
        let rule = |action: &Action| {
            let scope = RuleScope::Same(predicate(r#"http.host eq "a""#, &env).unwrap());
            let rule = Rule::new("r".into(), RuleId::unregistered(1), scope);
            Rule {
                action: *action,
                ..rule
            }
        };
        RuleSet::new(actions.iter().map(rule).collect())
    }

    fn decided(rule: u16, action: Action, dry_run: bool, mitigated: &[u16]) -> Decision {
        let mut decision = Decision {
            decided_by: Some(DecidedBy {
                rule: RuleIndex(rule),
                action,
                dry_run,
            }),
            ..Decision::default()
        };
        for index in mitigated {
            decision.events.push(RuleEvent {
                rule: RuleIndex(*index),
                event: RuleEventKind::Mitigated,
            });
        }
        decision
    }

    #[test]
    fn a_class_has_the_name_of_its_action() {
        for action in [
            Action::Block,
            Action::Shadow,
            Action::Divert,
            Action::Delay,
            Action::Tarpit,
            Action::Close,
            Action::Tag,
            Action::Log,
            Action::Allow,
            Action::Challenge,
        ] {
            assert_eq!(ActionClass::from(action).name(), action.name());
        }
        let indices = ActionClass::ALL.map(ActionClass::index);
        assert!(indices.iter().copied().eq(0..ActionClass::COUNT));
    }

    #[test]
    fn a_request_has_the_class_of_the_action_that_was_taken() {
        let rules = rules(&[Action::Log, Action::Tag, Action::Delay, Action::Block]);
        let class = |decision: &Decision| ActionClass::of(decision, &rules);
        assert_eq!(class(&Decision::default()), ActionClass::Forward);
        let blocked = decided(3, Action::Block, false, &[0, 3]);
        assert_eq!(class(&blocked), ActionClass::Block);
        // Of several actions that forward the request, the first of delay, tag and log counts.
        let logged = decided(0, Action::Log, false, &[0]);
        assert_eq!(class(&logged), ActionClass::Log);
        let all = decided(0, Action::Log, false, &[0, 1, 2]);
        assert_eq!(class(&all), ActionClass::Delay);
        let dry_run = decided(3, Action::Block, true, &[]);
        assert_eq!(class(&dry_run), ActionClass::Forward);
        let behind = decided(3, Action::Block, true, &[1]);
        assert_eq!(class(&behind), ActionClass::Tag);
    }
}
