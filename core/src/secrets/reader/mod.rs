//! Replaces placeholders in payloads with secrets.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use futures::stream::{StreamExt as _, TryStreamExt as _};
use parking_lot::Mutex;
use tokio::sync::{OnceCell, Semaphore};

use super::placeholder::DescriptorPlaceholder;
use super::scope::Scope;
use super::walk::{Found, placeholders};
use super::whole::{WholeError, whole_payload};
use super::{KeyError, Redactor, Secret, SecretKey, SecretStore, StoreError, WalkError};
use crate::error::categories;
use crate::payload::pointer::Pointer;
use crate::payload::{Descriptor, PayloadType, Value};

/// The number of keys that are read at once.
const CONCURRENT_LOOKUPS: usize = 16;

/// Reads the secrets of one run.
///
/// Each key is read from the store once and its result is kept, also if it is an error. A rotated value is therefore
/// seen by the next run. At most 16 keys are read at the same time. Clones are the same reader.
#[derive(Clone)]
pub struct SecretReader(Arc<Inner>);

struct Inner {
    store: Option<SecretStore>,
    lookups: Mutex<HashMap<SecretKey, Arc<OnceCell<Lookup>>>>,
    /// Secrets that the server showed.
    shown: Mutex<Vec<Secret>>,
    permits: Semaphore,
}

type Lookup = Result<Secret, Arc<StoreError>>;

/// A payload with resolved placeholders.
#[derive(Clone)]
pub struct Resolved {
    /// The payload; the given one if it holds no placeholder.
    pub payload: Arc<Value>,
    /// The places of secrets in it, depth-first; the root if the whole resource is a secret.
    pub secrets: Vec<Pointer>,
}

/// The reason why placeholders could not be resolved. Messages name the place and the key, and never contain a value.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ResolveError {
    /// A placeholder is malformed, or the payload nests too deep.
    #[error("{scope}: {source}")]
    Walk {
        /// The resource.
        scope: Scope,
        /// The place and the fault.
        #[source]
        source: WalkError,
    },
    /// A placeholder has an invalid key.
    #[error("{scope}: the placeholder at \"{at}\": {source}")]
    Key {
        /// The resource.
        scope: Scope,
        /// The place of the placeholder.
        at: Pointer,
        /// The fault.
        #[source]
        source: KeyError,
    },
    /// There is no secret store.
    #[error(
        "{scope}: secret provider is not configured: the value at \"{at}\" is a placeholder; configure a secret store"
    )]
    NoStore {
        /// The resource.
        scope: Scope,
        /// The place of the placeholder.
        at: Pointer,
    },
    /// The store failed, or has no such secret.
    #[error("{scope}: cannot read the secret {key} for \"{at}\": {source}")]
    Lookup {
        /// The resource.
        scope: Scope,
        /// The place of the placeholder.
        at: Pointer,
        /// The key of the secret.
        key: SecretKey,
        /// The cause.
        #[source]
        source: Arc<StoreError>,
    },
    /// The secret is the whole payload, but cannot be decoded.
    #[error("{scope}: the secret {key} is not the payload of a resource: {source}")]
    Whole {
        /// The resource.
        scope: Scope,
        /// The key of the secret.
        key: SecretKey,
        /// The cause.
        #[source]
        source: WholeError,
    },
}

categories!(ResolveError {
    .source: Lookup;
    Validation: Walk, Key, NoStore, Whole;
});

/// The placeholders of a payload by kind.
#[derive(Default)]
struct Sorted {
    wanted: Vec<(Pointer, SecretKey)>,
    described: Vec<(Pointer, DescriptorPlaceholder)>,
}

impl SecretReader {
    /// Returns a reader for one run. Without a store every secret placeholder is an error.
    pub fn new(store: Option<SecretStore>) -> Self {
        Self(Arc::new(Inner {
            store,
            lookups: Mutex::default(),
            shown: Mutex::default(),
            permits: Semaphore::new(CONCURRENT_LOOKUPS),
        }))
    }

    /// Whether there is a secret store.
    pub fn has_store(&self) -> bool {
        self.0.store.is_some()
    }

    /// Returns `payload` with each placeholder replaced by its value. `descriptor` is the format of the payload, by
    /// default JSON. It determines how a resource that is a secret as a whole is decoded, and the values of
    /// `{{payload_type .}}` and the other descriptor placeholders, which need no store.
    ///
    /// A payload without placeholders is searched once and returned unchanged. Secrets are strings and are not
    /// searched for further placeholders. If several fail, the error is that of the first in the payload.
    pub async fn resolve(
        &self,
        scope: &Scope,
        descriptor: Option<&Descriptor>,
        payload: Arc<Value>,
    ) -> Result<Resolved, ResolveError> {
        let found =
            placeholders(&payload).map_err(|source| ResolveError::Walk { scope: scope.clone(), source })?;
        if found.is_empty() {
            return Ok(Resolved { payload, secrets: Vec::new() });
        }
        // Stage 1: find the key of each placeholder.
        let Sorted { wanted, described } = self.sort(scope, found)?;
        // Stage 2: read the keys.
        let fetches: Vec<_> = wanted.iter().map(|(at, key)| self.fetch(scope, at, key)).collect();
        let fetches = futures::stream::iter(fetches).buffered(CONCURRENT_LOOKUPS);
        let values: Vec<Secret> = fetches.try_collect().await?;
        // Stage 3: replace the placeholders.
        let json = || Descriptor::of(PayloadType::Json);
        let descriptor = descriptor.cloned().unwrap_or_else(json);
        let mut payload = Arc::unwrap_or_clone(payload);
        for (at, field) in described {
            put(&mut payload, &at, Value::from(field.value(&descriptor)));
        }
        for ((at, key), secret) in wanted.iter().zip(&values) {
            let value = if at.is_root() {
                whole_payload(secret, descriptor.payload_type).map_err(|source| ResolveError::Whole {
                    scope: scope.clone(),
                    key: key.clone(),
                    source,
                })?
            } else {
                Value::from(secret.expose())
            };
            put(&mut payload, at, value);
        }
        let secrets = wanted.into_iter().map(|(at, _)| at).collect();
        Ok(Resolved { payload: Arc::new(payload), secrets })
    }

    /// Returns the keys of secrets and the other placeholders. Fails at the first one that cannot be resolved.
    fn sort(&self, scope: &Scope, found: Vec<(Pointer, Found)>) -> Result<Sorted, ResolveError> {
        let mut sorted = Sorted::default();
        for (at, found) in found {
            match found {
                Found::Descriptor(field) => sorted.described.push((at, field)),
                Found::Secret(_) if !self.has_store() => {
                    return Err(ResolveError::NoStore { scope: scope.clone(), at });
                }
                Found::Secret(placeholder) => match scope.key(&at, &placeholder) {
                    Ok(key) => sorted.wanted.push((at, key)),
                    Err(source) => return Err(ResolveError::Key { scope: scope.clone(), at, source }),
                },
            }
        }
        Ok(sorted)
    }

    async fn fetch(&self, scope: &Scope, at: &Pointer, key: &SecretKey) -> Result<Secret, ResolveError> {
        let Some(found) = self.lookup(key).await else {
            return Err(ResolveError::NoStore { scope: scope.clone(), at: at.clone() });
        };
        found.map_err(|source| ResolveError::Lookup {
            scope: scope.clone(),
            at: at.clone(),
            key: key.clone(),
            source,
        })
    }

    /// Returns the result of the store for `key`; `None` without a store.
    async fn lookup(&self, key: &SecretKey) -> Option<Lookup> {
        let store = self.0.store.as_ref()?;
        let cell = {
            let mut lookups = self.0.lookups.lock();
            match lookups.get(key) {
                Some(cell) => Arc::clone(cell),
                None => Arc::clone(lookups.entry(key.clone()).or_default()),
            }
        };
        let ask = || async {
            // The semaphore is never closed; an error would only lift the limit.
            let _permit = self.0.permits.acquire().await.ok();
            store.get(key).await.map_err(Arc::new)
        };
        Some(cell.get_or_init(ask).await.clone())
    }

    /// Adds a secret that the server showed, such as a token that is also the id of its resource.
    pub fn add_shown(&self, secret: Secret) {
        self.0.shown.lock().push(secret);
    }

    /// Whether values were read from the store.
    pub fn has_read(&self) -> bool {
        let lookups = self.0.lookups.lock();
        lookups.values().any(|cell| matches!(cell.get(), Some(Ok(_))))
    }

    /// Returns all values that were read so far, and those that the server showed.
    pub fn values(&self) -> Vec<Secret> {
        let mut values = self.0.shown.lock().clone();
        let lookups = self.0.lookups.lock();
        values.extend(lookups.values().filter_map(|cell| cell.get()?.as_ref().ok()).cloned());
        values
    }

    /// Whether other owners still use this reader.
    pub fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Returns a redactor for these values.
    pub fn redactor(&self) -> Redactor {
        Redactor::new(&self.values())
    }
}

fn put(payload: &mut Value, at: &Pointer, value: Value) {
    if let Some(place) = at.get_mut(payload) {
        *place = value;
    }
}

impl fmt::Debug for SecretReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretReader({:?})", self.0.store)
    }
}

impl fmt::Debug for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Resolved({} secrets)", self.secrets.len())
    }
}

#[cfg(test)]
mod tests;
