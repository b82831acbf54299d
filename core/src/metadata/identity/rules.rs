//! The identity rules of a resource: its two templates and what follows from them.

use super::{Identity, IdentityError, IdentityTemplate};
use crate::path::{LogicalPath, check_segment};
use crate::payload::pointer::Pointer;
use crate::payload::{Object, Value};

/// The templates of id and alias. Where metadata states none, `/id` holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityRules {
    id: IdentityTemplate,
    alias: IdentityTemplate,
    explicit_id: bool,
    explicit_alias: bool,
}

impl IdentityRules {
    /// Rules of the templates that metadata states.
    pub fn new(id: Option<IdentityTemplate>, alias: Option<IdentityTemplate>) -> Self {
        let (explicit_id, explicit_alias) = (id.is_some(), alias.is_some());
        let default = || IdentityTemplate::of_pointer(default_pointer());
        let (id, alias) = (id.unwrap_or_else(default), alias.unwrap_or_else(default));
        Self { id, alias, explicit_id, explicit_alias }
    }

    /// The template of the remote id.
    pub fn id(&self) -> &IdentityTemplate {
        &self.id
    }

    /// The template of the alias.
    pub fn alias(&self) -> &IdentityTemplate {
        &self.alias
    }

    /// Whether metadata states the template of the alias.
    pub fn explicit_alias(&self) -> bool {
        self.explicit_alias
    }

    /// Whether metadata states both templates.
    pub fn both_explicit(&self) -> bool {
        self.explicit_id && self.explicit_alias
    }

    /// Whether metadata states at least one template.
    pub fn any_explicit(&self) -> bool {
        self.explicit_id || self.explicit_alias
    }

    /// The names of the resource at `path` with `payload`, the desired one after defaults and includes, or
    /// the [seed](Self::seed) where only the path is known.
    ///
    /// Both start as the last segment of the path (`/` for the root). A simple template replaces it if it
    /// finds a scalar that is not blank; any other template must render. What a template gives must be one
    /// path segment.
    pub fn identify(&self, path: &LogicalPath, payload: &Value) -> Result<Identity, IdentityError> {
        Ok(Identity { alias: name(&self.alias, path, payload)?, remote_id: name(&self.id, path, payload)? })
    }

    /// What stands in for the payload where only the path is known: `derived`, the fields that path
    /// templates gave, and the last segment at the pointer of a simple alias, then of a simple id. Nothing
    /// that is there already is overwritten. Other templates cannot be reversed.
    pub fn seed(&self, path: &LogicalPath, derived: Object) -> Value {
        let mut seed = Value::Object(derived);
        if !path.is_root() {
            for pointer in [&self.alias, &self.id].into_iter().filter_map(IdentityTemplate::simple) {
                if pointer.get(&seed).is_none() {
                    seed = pointer.put(seed, Value::from(path.name()));
                }
            }
        }
        seed
    }

    /// What `payload` lacks of the values that explicit templates need, each once: pointers, or calls of
    /// `default` that find nothing. A resource to be created may lack its id, which the server may assign.
    pub fn missing_in(&self, payload: &Value, creating: bool) -> Vec<String> {
        let alias = self.explicit_alias.then_some(&self.alias);
        let id = (self.explicit_id && !creating).then_some(&self.id);
        let mut missing = Vec::new();
        for text in [alias, id].into_iter().flatten().flat_map(|template| template.missing_in(payload)) {
            if !missing.contains(&text) {
                missing.push(text);
            }
        }
        missing
    }
}

impl Default for IdentityRules {
    fn default() -> Self {
        Self::new(None, None)
    }
}

fn default_pointer() -> Pointer {
    Pointer::from_token("id")
}

fn name(template: &IdentityTemplate, path: &LogicalPath, payload: &Value) -> Result<String, IdentityError> {
    let rendered = match template.evaluate(payload) {
        Ok(name) => name,
        Err(_) if template.simple().is_some() => {
            return Ok(if path.is_root() { "/" } else { path.name() }.to_owned());
        }
        Err(error) => return Err(error),
    };
    match check_segment(&rendered) {
        Ok(segment) => Ok(segment.to_owned()),
        Err(source) => Err(IdentityError::NotASegment { template: template.source().to_owned(), source }),
    }
}
