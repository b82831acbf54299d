//! Keeps secrets out of files: finds them in drafts and replaces them with placeholders.

use std::collections::{BTreeMap, BTreeSet};

use super::declare::{self, Declaration};
use super::items::{is_list, items_of, name, names_itself};
use super::masked::{has_mask, holds_mask, is_mask};
use super::{AuthoringError, Batch, Draft, stored};
use crate::metadata::{Metadata, Rules};
use crate::path::LogicalPath;
use crate::payload::pointer::{Pointer, array_index, places};
use crate::payload::{Descriptor, Value, encode};
use crate::repository::{Save, Store};
use crate::secrets::{
    PLACEHOLDER, Secret, SecretKey, detect, find_placeholder, is_placeholder, placeholder_places,
    whole_placeholder, whole_secret,
};

/// The attributes of payloads that are moved to the secret store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Attributes {
    /// The attributes that metadata declares as secret.
    #[default]
    Declared,
    /// The declared attributes, and all that look like secrets. The latter are then declared in metadata.
    Likely,
    /// The declared attributes and these. Each must look like a secret, and is then declared in metadata.
    Listed(Vec<Pointer>),
}

/// How the secrets of drafts are handled.
#[derive(Clone, Debug, Default)]
pub struct SecretOptions {
    /// Whether each draft is a secret as a whole, regardless of metadata.
    pub whole: bool,
    /// The attributes of a draft that are secrets.
    pub attributes: Attributes,
    /// Whether other values that look like secrets may be written in plain text.
    pub allow_plaintext: bool,
    /// Whether a secret store is configured.
    pub has_store: bool,
    /// The credentials of the user. Servers may show them, such as the token of a request in the list of tokens.
    pub credentials: Vec<Secret>,
}

/// Drafts without their secrets, and the steps that store and declare these secrets.
///
/// Carry the steps out in this order: store the secrets, declare attributes, write the drafts, declare whole
/// resources. In this order, no file refers to a secret that does not exist, and no metadata declares a plain-text
/// file as secret.
#[derive(Debug, Default)]
pub struct Concealed {
    /// The drafts, with placeholders.
    pub drafts: Vec<Draft>,
    /// The values to put into the secret store.
    pub secrets: Vec<(SecretKey, Secret)>,
    /// Declarations of secret attributes, to be written before the drafts.
    pub attributes: Vec<Declaration>,
    /// Secrets that the server masks. They are stored only if the store has no value, which may be the real one.
    pub masks: Vec<(SecretKey, Secret)>,
    /// Declarations of resources that are secret as a whole, to be written after the drafts.
    pub whole: Vec<Declaration>,
    /// Secrets within arrays. Their keys hold an index, so they no longer match if the array is reordered.
    pub in_arrays: Vec<(LogicalPath, Pointer)>,
    /// The attributes that the server masks, and the resources. Their files keep the values that they have.
    pub masked: BTreeMap<Pointer, Vec<LogicalPath>>,
}

/// Takes the secrets out of `batches` without writing anything. Fails if
///
/// - a draft of the server has no content;
/// - a value looks like a secret, or would replace the placeholder of a secret in the file, but is neither declared nor
///   selected, unless plain text is allowed;
/// - a secret has to be stored but no store is configured;
/// - a draft is a list whose items have declared secrets;
/// - a secret is neither a string nor null, because stores hold strings only;
/// - a listed attribute does not look like a secret, or attributes are requested of a payload that is not an object.
///
/// Placeholders are kept. Blocks.
pub fn conceal(
    store: &Store,
    metadata: &Metadata,
    mut batches: Vec<Batch>,
    options: &SecretOptions,
) -> Result<Concealed, AuthoringError> {
    let mut concealed = Concealed::default();
    // Replace what the server masks with the values of the files.
    for draft in batches.iter_mut().filter(|batch| batch.observed).flat_map(|batch| &mut batch.drafts) {
        for at in draft.keep_masked(store)? {
            concealed.masked.entry(at).or_default().push(draft.path.clone());
        }
    }
    // Determine the secrets of each batch.
    let batches: Vec<_> = batches
        .into_iter()
        .map(|batch| Candidates::of(store, metadata, batch, options))
        .collect::<Result<_, _>>()?;
    // Reject the drafts if an undeclared secret would be written in plain text.
    if !options.allow_plaintext {
        let found: Vec<String> = batches.iter().flat_map(Candidates::readable).collect();
        if !found.is_empty() {
            return Err(AuthoringError::Plaintext(found));
        }
    }
    // Replace the secrets with placeholders.
    for batch in batches {
        batch.conceal(store, metadata, options, &mut concealed)?;
    }
    Ok(concealed)
}

/// A batch, and the attributes of its drafts that are secrets.
struct Candidates {
    collection: Option<LogicalPath>,
    drafts: Vec<Candidate>,
    observed: bool,
    /// The attributes to take out of every draft in addition to those declared for it.
    selected: BTreeSet<Pointer>,
}

struct Candidate {
    draft: Draft,
    rules: std::sync::Arc<Rules>,
    /// Whether the whole payload is a secret.
    whole: bool,
    /// The attributes that look like secrets, or that the file has as secrets.
    likely: Vec<Pointer>,
}

impl Candidate {
    fn of(metadata: &Metadata, draft: Draft, options: &SecretOptions) -> Result<Self, AuthoringError> {
        let rules = metadata.rules(&draft.path)?;
        let declared_whole = rules.resolved().secret;
        if declared_whole && options.attributes != Attributes::Declared {
            return Err(AuthoringError::WholeAndAttributes(draft.path));
        }
        let whole = options.whole || declared_whole;
        if !whole && !options.allow_plaintext {
            check_items(metadata, &draft, &rules)?;
        }
        let nothing = draft.payload.is_null() || is_whole_placeholder(&draft.payload);
        let likely = if whole || nothing { Vec::new() } else { likely(&draft.payload, &options.credentials) };
        Ok(Self { draft, rules, whole: whole && !nothing, likely })
    }

    /// Adds the attributes whose values would replace a placeholder in the existing file.
    fn add_former(&mut self, store: &Store) -> Result<(), AuthoringError> {
        let Some(before) = stored(store, &self.draft.path)? else { return Ok(()) };
        let former = placeholder_places(&before);
        // The entries of arrays may have another order. If all placeholders are left, none was replaced.
        let are_left = placeholder_places(&self.draft.payload).len() >= former.len();
        let is_in_array = |at: &Pointer| at.tokens().iter().any(|token| array_index(token).is_some());
        let replaces = |at: &Pointer| {
            !(at.tokens().is_empty() || are_left && is_in_array(at))
                && is_readable(&self.draft.payload, std::slice::from_ref(at))
        };
        let former = former.into_iter().filter(replaces);
        let former: Vec<_> = former.filter(|at| !self.likely.contains(at)).collect();
        self.likely.extend(former);
        Ok(())
    }

    fn declared(&self) -> &[Pointer] {
        &self.rules.resolved().secret_attributes
    }
}

impl Candidates {
    fn of(
        store: &Store,
        metadata: &Metadata,
        batch: Batch,
        options: &SecretOptions,
    ) -> Result<Self, AuthoringError> {
        let Batch { collection, drafts, observed } = batch;
        // A store would remove the file.
        if let Some(empty) = drafts.iter().find(|draft| draft.payload.is_null()) {
            let path = empty.path.clone();
            return Err(if observed {
                AuthoringError::NoContent(path)
            } else {
                AuthoringError::Nothing(path)
            });
        }
        let drafts = drafts.into_iter().map(|draft| Candidate::of(metadata, draft, options));
        let mut drafts: Vec<Candidate> = drafts.collect::<Result<_, _>>()?;
        for candidate in drafts.iter_mut().filter(|candidate| observed && !candidate.whole) {
            candidate.add_former(store)?;
        }
        let has_attributes = |payload: &Value| payload.as_object().is_some() || is_whole_placeholder(payload);
        let other = drafts.iter().find(|candidate| !has_attributes(&candidate.draft.payload));
        if let (true, Some(other)) = (options.attributes != Attributes::Declared, other) {
            return Err(AuthoringError::NoAttributes(other.draft.path.clone()));
        }
        let all = || drafts.iter().flat_map(|candidate| candidate.likely.iter().chain(candidate.declared()));
        let selected = match &options.attributes {
            Attributes::Declared => BTreeSet::new(),
            Attributes::Likely => all().cloned().collect(),
            Attributes::Listed(listed) => {
                let present =
                    |at: &Pointer| drafts.iter().any(|candidate| at.get(&candidate.draft.payload).is_some());
                let unknown = listed.iter().find(|at| {
                    !all().any(|candidate| candidate == *at) && (collection.is_none() || present(at))
                });
                let path = || collection.as_ref().or_else(|| Some(&drafts.first()?.draft.path));
                if let (Some(at), Some(path)) = (unknown, path()) {
                    return Err(AuthoringError::NotASecret { path: path.clone(), at: at.clone() });
                }
                listed.iter().cloned().collect()
            }
        };
        Ok(Self { collection, drafts, observed, selected })
    }

    /// Returns, for each draft, the secrets that would be written in plain text.
    fn readable(&self) -> impl Iterator<Item = String> {
        self.drafts.iter().filter_map(|candidate| {
            let kept = |at: &&Pointer| !self.selected.contains(*at) && !candidate.declared().contains(*at);
            let left: Vec<String> = candidate.likely.iter().filter(kept).map(ToString::to_string).collect();
            (!left.is_empty()).then(|| format!("{}: {}", candidate.draft.path, left.join(", ")))
        })
    }

    fn conceal(
        self,
        store: &Store,
        metadata: &Metadata,
        options: &SecretOptions,
        concealed: &mut Concealed,
    ) -> Result<(), AuthoringError> {
        let mut handled: BTreeMap<LogicalPath, BTreeSet<Pointer>> = BTreeMap::new();
        for Candidate { mut draft, rules, whole, .. } in self.drafts {
            if whole {
                conceal_whole(store, &mut draft, &rules, options, concealed)?;
            } else {
                // Secrets that the file states in plain text go to the store, if there is one.
                if self.observed && options.has_store {
                    draft.keep_write_only(store, rules.resolved())?;
                }
                let attributes = self.selected.iter().chain(&rules.resolved().secret_attributes);
                let attributes: BTreeSet<&Pointer> = attributes.collect();
                let found = conceal_attributes(&mut draft, attributes, options, concealed)?;
                handled.insert(draft.path.clone(), found);
                // Values that are in the file already are not checked again.
                if self.observed {
                    draft.keep_write_only(store, rules.resolved())?;
                }
            }
            concealed.drafts.push(draft);
        }
        if options.attributes == Attributes::Declared {
            return Ok(());
        }
        concealed.attributes.extend(declare::attributes(metadata, self.collection.as_ref(), handled)?);
        Ok(())
    }
}

/// Fails if the draft is a list, and metadata declares a secret in an item: the placeholder would be that of the list.
fn check_items(metadata: &Metadata, draft: &Draft, own: &Rules) -> Result<(), AuthoringError> {
    let (path, payload) = (&draft.path, &draft.payload);
    let (items, attributes) = (items_of(payload).unwrap_or_default(), &own.resolved().secret_attributes);
    if items.is_empty() && attributes.is_empty() {
        return Ok(());
    }
    if !metadata.has_wildcard_child(path)? && !is_list(metadata, path, payload)? {
        return Ok(());
    }
    // Objects in a resource are its parts, and those in its arrays may be its members.
    let mut exposed = if names_itself(metadata, path, payload)? {
        any_entry_readable(payload, attributes)
    } else {
        payload.children().any(|child| any_readable(child, attributes))
    };
    for (index, item) in items.iter().enumerate() {
        let name = name(own, item).unwrap_or_else(|| index.to_string());
        let Ok(path) = path.join(&name) else { continue };
        let rules = metadata.rules(&path)?;
        exposed |= rules.resolved().secret || is_readable(item, &rules.resolved().secret_attributes);
    }
    if exposed { Err(AuthoringError::SecretInList(path.clone())) } else { Ok(()) }
}

/// Whether `payload` or an object in it has a value at one of these attributes. Empty texts, placeholders and the masks of
/// servers are not values.
pub fn any_readable(payload: &Value, attributes: &[Pointer]) -> bool {
    is_readable(payload, attributes) || payload.children().any(|child| any_readable(child, attributes))
}

/// The same for the entries of arrays in `payload` only.
fn any_entry_readable(payload: &Value, attributes: &[Pointer]) -> bool {
    let is_array = payload.as_array().is_some();
    let has = |child: &Value| {
        if is_array { any_readable(child, attributes) } else { any_entry_readable(child, attributes) }
    };
    payload.children().any(has)
}

/// Whether `payload` itself has such a value at one of these attributes.
pub fn is_readable(payload: &Value, attributes: &[Pointer]) -> bool {
    attributes.iter().any(|at| match at.get(payload) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty() && !is_placeholder(text) && !is_mask(text),
        Some(_) => true,
    })
}

/// Returns the places in `payload` that look like secrets, and those of texts that contain one of the `credentials`.
fn likely(payload: &Value, credentials: &[Secret]) -> Vec<Pointer> {
    // A header has the token behind the name of a scheme.
    let tokens = credentials.iter().filter_map(|secret| secret.expose().split_whitespace().next_back());
    let known: Vec<&str> = tokens.filter(|token| is_distinct(token)).collect();
    let contains = |part: &Value| part.as_str().is_some_and(|text| known.iter().any(|it| text.contains(it)));
    let mut likely = detect(payload);
    let shown = if known.is_empty() { Vec::new() } else { places(payload, &contains) };
    let further: Vec<_> = shown.into_iter().filter(|at| !likely.contains(at)).collect();
    likely.extend(further);
    likely
}

/// Whether a credential is so long that other texts do not contain it by chance, such as "administrator".
fn is_distinct(credential: &str) -> bool {
    credential.len() >= 8 && !credential.chars().all(char::is_alphabetic)
}

/// Returns whether the payload consists of one placeholder.
fn is_whole_placeholder(payload: &Value) -> bool {
    find_placeholder(payload).is_some_and(|at| at.is_empty())
}

/// Replaces the whole payload with a placeholder.
fn conceal_whole(
    store: &Store,
    draft: &mut Draft,
    rules: &Rules,
    options: &SecretOptions,
    concealed: &mut Concealed,
) -> Result<(), AuthoringError> {
    let path = &draft.path;
    if !options.has_store {
        let what = "is a secret as a whole".to_owned();
        return Err(AuthoringError::SecretStoreMissing { path: path.clone(), what });
    }
    let descriptor = descriptor_of(store, draft, rules)?;
    let content = encode(descriptor.payload_type, &draft.payload)
        .map_err(|source| AuthoringError::Encode { path: path.clone(), source })?;
    let key = key(path, SecretKey::WHOLE)?;
    let secrets = if holds_mask(&draft.payload) { &mut concealed.masks } else { &mut concealed.secrets };
    secrets.push((key, whole_secret(&content)));
    if !rules.resolved().secret {
        concealed.whole.push(Declaration::whole(path)?);
    }
    draft.payload = whole_placeholder(descriptor.payload_type);
    draft.descriptor = Some(descriptor);
    Ok(())
}

/// Returns the format that the file of `draft` would have.
fn descriptor_of(store: &Store, draft: &Draft, rules: &Rules) -> Result<Descriptor, AuthoringError> {
    let (descriptor, format) = (draft.descriptor.as_ref(), rules.payload_type());
    let save = Save { descriptor, format, ..Save::default() };
    Ok(store.target(&draft.path, &draft.payload, &save)?.descriptor)
}

/// Takes `attributes` out of the payload, and returns those that it has.
fn conceal_attributes(
    draft: &mut Draft,
    attributes: BTreeSet<&Pointer>,
    options: &SecretOptions,
    concealed: &mut Concealed,
) -> Result<BTreeSet<Pointer>, AuthoringError> {
    let mut handled = BTreeSet::new();
    let path = draft.path.clone();
    for at in attributes {
        let Some(value) = at.get_mut(&mut draft.payload) else { continue };
        match value {
            Value::Null => continue,
            Value::String(text) if text.is_empty() || is_placeholder(text) => {}
            Value::String(text) => {
                if !options.has_store {
                    let what = format!("has the secret {at}");
                    return Err(AuthoringError::SecretStoreMissing { path, what });
                }
                let secrets = if has_mask(text) { &mut concealed.masks } else { &mut concealed.secrets };
                let secret = Secret::from(std::mem::replace(text, PLACEHOLDER.to_owned()));
                secrets.push((key(&path, &at.to_string())?, secret));
                if at.tokens().iter().any(|token| array_index(token).is_some())
                    && within_array(&draft.payload, at)
                {
                    concealed.in_arrays.push((path.clone(), at.clone()));
                }
            }
            _ if options.allow_plaintext => {}
            other => {
                return Err(AuthoringError::SecretType { path, at: at.clone(), kind: other.kind() });
            }
        }
        handled.insert(at.clone());
    }
    Ok(handled)
}

/// Returns whether `at` is an element of an array or below one.
fn within_array(payload: &Value, at: &Pointer) -> bool {
    let above =
        (0..at.tokens().len()).map(|length| at.tokens()[..length].iter().cloned().collect::<Pointer>());
    above.into_iter().any(|above| above.get(payload).is_some_and(|value| value.as_array().is_some()))
}

fn key(path: &LogicalPath, name: &str) -> Result<SecretKey, AuthoringError> {
    SecretKey::of_resource(path, name)
        .map_err(|source| AuthoringError::SecretKey { path: path.clone(), source })
}
