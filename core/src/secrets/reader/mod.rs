//! Putting secrets in the place of placeholders.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures::stream::{StreamExt as _, TryStreamExt as _};
use tokio::sync::{OnceCell, Semaphore};

use super::placeholder::DescriptorPlaceholder;
use super::scope::Scope;
use super::walk::{Found, placeholders};
use super::whole::{WholeError, whole_payload};
use super::{KeyError, Redactor, Secret, SecretKey, SecretStore, StoreError, WalkError};
use crate::error::{Categorized, Category};
use crate::payload::pointer::Pointer;
use crate::payload::{Descriptor, PayloadType, Value};

/// How many keys are asked for at once.
const CONCURRENT_LOOKUPS: usize = 16;

/// Reads the secrets of one run.
///
/// Each key is fetched from the store once, whoever asks for it and however often, and its answer kept, also if
/// it is an error; so a rotated value is seen by the next run. At most 16 keys are fetched at the same time.
/// Clones are the same reader.
#[derive(Clone)]
pub struct SecretReader(Arc<Inner>);

struct Inner {
    store: Option<SecretStore>,
    lookups: Mutex<HashMap<SecretKey, Arc<OnceCell<Lookup>>>>,
    permits: Semaphore,
}

type Lookup = Result<Secret, Arc<StoreError>>;

/// A payload with secrets in it.
#[derive(Clone)]
pub struct Resolved {
    /// The payload. It is the one that was given if it holds no placeholder.
    pub payload: Arc<Value>,
    /// Where in it secrets are, depth-first. The whole document if the resource is a secret as a whole.
    pub secrets: Vec<Pointer>,
}

/// Why placeholders could not be replaced. Names the place and the key, and never a value.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ResolveError {
    /// They cannot be told.
    #[error("{scope}: {source}")]
    Walk {
        /// The resource.
        scope: Scope,
        /// Where, and what is wrong.
        #[source]
        source: WalkError,
    },
    /// One of them names no secret.
    #[error("{scope}: the placeholder at \"{at}\": {source}")]
    Key {
        /// The resource.
        scope: Scope,
        /// Where it is.
        at: Pointer,
        /// What is wrong.
        #[source]
        source: KeyError,
    },
    /// There is nowhere to look.
    #[error(
        "{scope}: secret provider is not configured: the value at \"{at}\" is a placeholder; configure a secret store"
    )]
    NoStore {
        /// The resource.
        scope: Scope,
        /// Where the placeholder is.
        at: Pointer,
    },
    /// The store does not give it.
    #[error("{scope}: cannot read the secret {key} for \"{at}\": {source}")]
    Lookup {
        /// The resource.
        scope: Scope,
        /// Where the placeholder is.
        at: Pointer,
        /// What it names.
        key: SecretKey,
        /// Why.
        #[source]
        source: Arc<StoreError>,
    },
    /// It is to be the whole payload and cannot be.
    #[error("{scope}: the secret {key} is not the payload of a resource: {source}")]
    Whole {
        /// The resource.
        scope: Scope,
        /// The secret.
        key: SecretKey,
        /// Why not.
        #[source]
        source: WholeError,
    },
}

impl Categorized for ResolveError {
    fn category(&self) -> Category {
        match self {
            Self::Walk { .. } | Self::Key { .. } | Self::NoStore { .. } | Self::Whole { .. } => {
                Category::Validation
            }
            Self::Lookup { source, .. } => source.category(),
        }
    }
}

/// The placeholders of a payload by what they stand for.
#[derive(Default)]
struct Sorted {
    wanted: Vec<(Pointer, SecretKey)>,
    described: Vec<(Pointer, DescriptorPlaceholder)>,
}

impl SecretReader {
    /// A reader for one run. Without a store every secret placeholder is an error.
    pub fn new(store: Option<SecretStore>) -> Self {
        Self(Arc::new(Inner {
            store,
            lookups: Mutex::default(),
            permits: Semaphore::new(CONCURRENT_LOOKUPS),
        }))
    }

    /// Whether there is a store to read from.
    pub fn has_store(&self) -> bool {
        self.0.store.is_some()
    }

    /// `payload` with the value of each placeholder in its place. `descriptor` tells what the payload is, which
    /// is JSON if nobody knows: what a resource that is a secret as a whole is decoded as, and what
    /// `{{payload_type .}}` and its like stand for; these need no store.
    ///
    /// A payload without placeholders is looked through once and returned as it is. Secrets are strings, and what
    /// they say is not looked through again. Of several that fail, the first in the payload is told.
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
        let Sorted { wanted, described } = self.sort(scope, found)?;
        let fetches: Vec<_> = wanted.iter().map(|(at, key)| self.fetch(scope, at, key)).collect();
        let fetches = futures::stream::iter(fetches).buffered(CONCURRENT_LOOKUPS);
        let values: Vec<Secret> = fetches.try_collect().await?;
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

    /// The keys of secrets, and the other placeholders. Fails for the first that cannot be resolved.
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

    /// What the store says about `key`; `None` without a store.
    async fn lookup(&self, key: &SecretKey) -> Option<Lookup> {
        let store = self.0.store.as_ref()?;
        let cell = {
            let mut lookups = self.0.lookups.lock().unwrap_or_else(PoisonError::into_inner);
            match lookups.get(key) {
                Some(cell) => Arc::clone(cell),
                None => Arc::clone(lookups.entry(key.clone()).or_default()),
            }
        };
        let ask = || async {
            // The semaphore is never closed; without a permit the bound alone would be lost.
            let _permit = self.0.permits.acquire().await.ok();
            store.get(key).await.map_err(Arc::new)
        };
        Some(cell.get_or_init(ask).await.clone())
    }

    /// All values that were read so far.
    pub fn values(&self) -> Vec<Secret> {
        let lookups = self.0.lookups.lock().unwrap_or_else(PoisonError::into_inner);
        let read = lookups.values().filter_map(|cell| cell.get()?.as_ref().ok());
        read.cloned().collect()
    }

    /// What takes all values that were read so far out of texts.
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
