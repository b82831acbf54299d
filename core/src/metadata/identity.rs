//! The identity of a resource: its alias in the repository and its remote id on the server.
//!
//! [`IdentityRules`] hold the two [`IdentityTemplate`]s of a resource and evaluate them.

use crate::language::template::{IdentityError, IdentityTemplate};
use crate::path::{LogicalPath, PathNames};
use crate::payload::pointer::Pointer;
use crate::payload::{Object, Value};

/// Members that identify an entry of a list when the identity rules do not, in order.
pub(super) const WELL_KNOWN: [&str; 8] =
    ["/id", "/clientId", "/name", "/alias", "/key", "/uuid", "/uid", "/username"];

/// The alias and remote id of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The name for people; the last segment of the logical path.
    pub alias: String,
    /// The segment that addresses the resource on the server.
    pub remote_id: String,
}

/// The templates of id and alias. The default of both is `/id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityRules {
    id: IdentityTemplate,
    alias: IdentityTemplate,
    explicit_id: bool,
    explicit_alias: bool,
    path_names: PathNames,
}

impl IdentityRules {
    /// Creates the rules from the templates that metadata states.
    pub fn new(id: Option<IdentityTemplate>, alias: Option<IdentityTemplate>) -> Self {
        let (explicit_id, explicit_alias) = (id.is_some(), alias.is_some());
        let default = || IdentityTemplate::of_pointer(default_pointer());
        let (id, alias) = (id.unwrap_or_else(default), alias.unwrap_or_else(default));
        Self { id, alias, explicit_id, explicit_alias, path_names: PathNames::default() }
    }

    /// Returns the rules of a resource whose name is the last segment of its path, unless metadata states another one. A
    /// member `id` of its payload is not its name.
    #[must_use]
    pub fn of_singleton(self) -> Self {
        let by_path = || IdentityTemplate::of_pointer(Pointer::from_token("remoteID"));
        Self {
            id: if self.explicit_id { self.id } else { by_path() },
            alias: if self.explicit_alias { self.alias } else { by_path() },
            ..self
        }
    }

    /// Returns the rules for paths whose segments name resources in another way.
    #[must_use]
    pub fn with_path_names(self, path_names: PathNames) -> Self {
        Self { path_names, ..self }
    }

    /// How the segments of a path name resources.
    pub fn path_names(&self) -> PathNames {
        self.path_names
    }

    /// The template of the remote id.
    pub fn id(&self) -> &IdentityTemplate {
        &self.id
    }

    /// The template of the alias.
    pub fn alias(&self) -> &IdentityTemplate {
        &self.alias
    }

    /// Returns whether metadata states the template of the alias.
    pub fn explicit_alias(&self) -> bool {
        self.explicit_alias
    }

    /// Returns the alias of all resources if metadata states it without a placeholder.
    pub fn constant_alias(&self) -> Option<&str> {
        let is_constant = self.explicit_alias && self.alias.pointers().next().is_none();
        is_constant.then(|| self.alias.source())
    }

    /// Returns whether metadata states at least one template.
    pub fn any_explicit(&self) -> bool {
        self.explicit_id || self.explicit_alias
    }

    /// Returns whether one template makes both the id and the alias.
    pub fn is_one(&self) -> bool {
        self.id.source() == self.alias.source()
    }

    /// Returns alias and remote id of the resource at `path`. `payload` is the desired one after defaults and includes,
    /// or the [seed](Self::seed) if only the path is known.
    ///
    /// The default of both is the last segment of the path (`/` for the root). It applies if the template is a single
    /// pointer without a scalar value, or with a blank one; an error of any other template is returned. A rendered name
    /// must be one path segment; see [`PathNames::check`].
    pub fn identify(&self, path: &LogicalPath, payload: &Value) -> Result<Identity, IdentityError> {
        let name = |template| name(template, self.path_names, path, payload);
        Ok(Identity { alias: name(&self.alias)?, remote_id: name(&self.id)? })
    }

    /// Returns a substitute for the payload if only the path is known: the fields `derived` from path templates, and
    /// the last segment at the pointers of simple alias and id templates, unless a value exists there that is not the first
    /// segment. Other templates cannot be reversed.
    pub fn seed(&self, path: &LogicalPath, derived: Object) -> Value {
        let mut seed = Value::Object(derived);
        // A template such as `/{{/name}}` is matched with the collection.
        let first = path.segments().next().map(|first| self.path_names.decode(first));
        let is_first = |value: &Value| value.as_str() == first.as_deref();
        if !path.is_root() {
            for pointer in [&self.alias, &self.id].into_iter().filter_map(IdentityTemplate::simple) {
                if pointer.get(&seed).is_none_or(is_first) {
                    seed = pointer.put(seed, Value::from(&*self.path_names.decode(path.name())));
                }
            }
        }
        seed
    }

    /// Returns the values that explicit templates require and `payload` lacks, without duplicates: pointers, and calls
    /// of `default` without a result. A resource to be created may lack its id, which the server may assign.
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

fn name(
    template: &IdentityTemplate,
    names: PathNames,
    path: &LogicalPath,
    payload: &Value,
) -> Result<String, IdentityError> {
    let rendered = match template.evaluate(payload) {
        Ok(name) => name,
        Err(_) if template.simple().is_some() => {
            return Ok(if path.is_root() { "/".into() } else { names.decode(path.name()) }.into_owned());
        }
        Err(error) => return Err(error),
    };
    match names.check(&rendered) {
        Ok(segment) => Ok(segment.to_owned()),
        Err(source) => Err(IdentityError::NotASegment { template: template.source().to_owned(), source }),
    }
}

/// Whether `id` looks like one that a server assigns: a number, or many hexadecimal digits as in a UUID.
pub fn is_assigned(id: &str) -> bool {
    const LONG: usize = 16;
    let is_number = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    let is_hex = |id: &str| id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_number || id.len() >= LONG && id.bytes().any(|byte| byte.is_ascii_digit()) && is_hex(id)
}

#[cfg(test)]
#[path = "identity_tests.rs"]
mod tests;
