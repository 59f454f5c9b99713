//! Which fields the expressions of a file may read, and why not the others.

use crate::config::file::ConfigFile;
use crate::expr::{FieldId, FieldScheme, FieldSpec, Phase};
use crate::facts::fields::{
    CLIENT_AGE, CLIENT_CLEARANCE, CLIENT_ID, CLIENT_KNOWN, CLIENT_KNOWN_USER, FieldTable,
    HeadFields, by_id,
};

/// The fields that the settings of a file provide.
#[derive(Clone, Copy, Debug)]
pub struct AvailableFields {
    /// Whether responses make clients known.
    has_known_clients: bool,
    /// Whether known clients have users.
    has_users: bool,
    /// Whether clients get clearances.
    has_challenge: bool,
    /// Whether the expression is the user of a request.
    is_user: bool,
    /// Whether the expression can read the request body.
    has_body: bool,
}

// === impl AvailableFields ===

impl AvailableFields {
    /// Returns the fields that the tables of `file` provide.
    pub fn of(file: &ConfigFile) -> Self {
        let known = file.known_clients.as_ref();
        let mut sources = file.known_sources();
        let preset_has_user = sources.any(|source| source.user.is_some());
        Self {
            has_known_clients: known.is_some(),
            has_users: preset_has_user || known.is_some_and(|known| known.user.is_some()),
            has_challenge: file.challenge.is_some(),
            is_user: false,
            has_body: true,
        }
    }

    /// Returns the fields that expressions outside rules may read.
    pub fn without_body(self) -> Self {
        Self {
            has_body: false,
            ..self
        }
    }

    fn all(&self) -> &'static dyn FieldScheme {
        if self.has_body {
            &FieldTable
        } else {
            &HeadFields
        }
    }

    /// Returns the fields that the user of a request may be computed from.
    pub fn for_user(self) -> Self {
        Self {
            is_user: true,
            ..self
        }
    }

    /// Returns why a field cannot be read. `None` if it can.
    fn obstacle(&self, field: FieldId) -> Option<String> {
        let name = by_id(field).name;
        let needs_known = [CLIENT_KNOWN, CLIENT_KNOWN_USER, CLIENT_ID, CLIENT_AGE];
        if needs_known.contains(&field) && !self.has_known_clients {
            return Some(format!(
                "`{name}` needs the table `[known_clients]`, which says what makes a client known"
            ));
        }
        if field == CLIENT_KNOWN_USER && self.is_user {
            return Some(format!(
                "`{name}` compares `user`, so `user` cannot read it"
            ));
        }
        if field == CLIENT_KNOWN_USER && !self.has_users {
            return Some(format!(
                "`{name}` needs `user` in `[known_clients]`, which says who sends a request"
            ));
        }
        if field == CLIENT_CLEARANCE && !self.has_challenge {
            return Some(format!("`{name}` needs the table `[challenge]`"));
        }
        (self.is_user && by_id(field).phase == Phase::Response).then(|| {
            format!(
                "`{name}` is known only in the response phase, but `user` is read from the request; \
                 an origin server can name the user in the response header `x-lockgate-user`"
            )
        })
    }
}

impl FieldScheme for AvailableFields {
    fn field(&self, name: &str) -> Option<FieldSpec> {
        let field = self.all().field(name)?;
        self.obstacle(field.id).is_none().then_some(field)
    }

    fn names(&self) -> Vec<&'static str> {
        self.all().names()
    }

    fn refusal(&self, name: &str) -> Option<String> {
        let obstacle = |field: FieldSpec| self.obstacle(field.id);
        let refusal = self.all().field(name).and_then(obstacle);
        refusal.or_else(|| self.all().refusal(name))
    }

    fn is_known_from_head(&self, field: FieldId) -> bool {
        FieldTable.is_known_from_head(field)
    }

    fn read_cost(&self, field: FieldId) -> usize {
        FieldTable.read_cost(field)
    }
}
