//! The checks of a validation. They send no requests and read no secrets.

use std::collections::BTreeSet;

use declarest_core::authoring::{has_template, is_readable};
use declarest_core::error::with_causes;
use declarest_core::language::referred::Unread;
use declarest_core::metadata::{self, Metadata, MetadataError, OperationName, ValidationError};
use declarest_core::path::LogicalPath;
use declarest_core::payload::PayloadType;
use declarest_core::payload::pointer::Pointer;
use declarest_core::repository::{self, EntryKind, ResourceFile, Tree};
use declarest_core::secrets::detect;
use declarest_core::sync::{Names, Resource, SyncError};

use super::finding::{Finding, Rule, Severity};
use crate::error::Failure;
use crate::repository::unused;

/// The result of a validation.
#[derive(Debug, Default)]
pub struct Checked {
    /// The number of resources.
    pub resources: usize,
    /// The findings, sorted by file and place.
    pub findings: Vec<Finding>,
}

/// Validates the resources in `scope`, and all metadata documents.
pub fn check(tree: &dyn Tree, metadata: &Metadata, scope: &LogicalPath) -> Result<Checked, Failure> {
    let mut findings = documents(tree)?;
    let faulty: BTreeSet<String> = findings.iter().map(|finding| finding.file.clone()).collect();
    let listing = repository::resources(tree, scope, true)?;
    let resources = listing.resources.len();
    for (path, error) in listing.broken {
        let message = with_causes(&error);
        let finding = Finding::new(Rule::Payload, Severity::Error, path.relative(), message);
        findings.push(Finding { path: Some(path.to_string()), ..finding });
    }
    let mut names = Names::default();
    for file in &listing.resources {
        if let Err(finding) = resource(tree, metadata, file, &mut names)
            // A fault of a document is reported once, not for each resource.
            && !faulty.contains(&finding.file)
        {
            findings.push(*finding);
        }
        findings.extend(secrets(tree, metadata, file));
    }
    let twins = names.end_part();
    let twins = listing.resources.iter().filter_map(|file| Some(finding(file, twins.get(&file.path)?)));
    findings.extend(twins);
    for unused in unused(tree)? {
        let message = unused.to_string();
        findings.push(Finding::new(Rule::Unused, Severity::Warning, &unused.file, message));
    }
    findings.sort();
    findings.dedup();
    Ok(Checked { resources, findings })
}

/// Returns the findings of all metadata documents.
fn documents(tree: &dyn Tree) -> Result<Vec<Finding>, Failure> {
    let (mut findings, mut pending) = (Vec::new(), vec![String::new()]);
    while let Some(directory) = pending.pop() {
        for entry in tree.entries(&directory)?.unwrap_or_default() {
            let place =
                if directory.is_empty() { entry.name.clone() } else { format!("{directory}/{}", entry.name) };
            let format = match (entry.kind, entry.name.as_str()) {
                (EntryKind::Directory, name) if !name.starts_with('.') => {
                    pending.push(place);
                    continue;
                }
                (EntryKind::File, "metadata.yaml") => PayloadType::Yaml,
                (EntryKind::File, "metadata.json") => PayloadType::Json,
                _ => continue,
            };
            let collection = directory.rsplit('/').next() == Some("_");
            let content = tree.read(&place)?.unwrap_or_default();
            if let Err(error) = metadata::read(format, &content, collection) {
                findings.push(Finding::new(Rule::Metadata, Severity::Error, &place, with_causes(&error)));
            }
        }
    }
    Ok(findings)
}

/// Checks one resource: its payload, its metadata, its names and its create request.
fn resource(
    tree: &dyn Tree,
    metadata: &Metadata,
    file: &ResourceFile,
    names: &mut Names,
) -> Result<(), Box<Finding>> {
    let found = |error: &SyncError| Box::new(finding(file, error));
    let resource = Resource::declared(tree, metadata, file.clone()).map_err(|error| found(&error))?;
    names.add(&resource).map_err(|error| found(&error))?;
    let evaluation = resource.evaluation_with(Some(&Unread)).map_err(|error| found(&error))?;
    let operation = OperationName::Create;
    let body = evaluation
        .render(operation)
        .and_then(|rendered| evaluation.body(operation, &rendered, &resource.payload));
    match body {
        // The document of the server is not available offline.
        Err(MetadataError::Validation { source, .. })
            if matches!(*source, ValidationError::NoDocument(_)) =>
        {
            Ok(())
        }
        // The server knows the ids of parents, and a transform may need numbers in the place of their names.
        Err(MetadataError::Transform { .. }) if resource.rules.names_ids() => Ok(()),
        Err(error) => Err(found(&error.into())),
        Ok(_) => Ok(()),
    }
}

fn finding(file: &ResourceFile, error: &SyncError) -> Finding {
    let (rule, place) = match error {
        SyncError::Repository(_) => (Rule::Payload, file.file.as_str()),
        SyncError::Metadata(MetadataError::Document { file, .. } | MetadataError::Read { file, .. }) => {
            (Rule::Metadata, file.as_str())
        }
        SyncError::Claimed(..) | SyncError::Metadata(MetadataError::Identity { .. }) => {
            (Rule::Identity, file.file.as_str())
        }
        SyncError::Metadata(
            MetadataError::Lookup { .. } | MetadataError::Layers { .. } | MetadataError::Defaults { .. },
        ) => (Rule::Metadata, file.file.as_str()),
        _ => (Rule::Request, file.file.as_str()),
    };
    let finding = Finding::new(rule, Severity::Error, place, with_causes(error));
    Finding { path: Some(file.path.to_string()), ..finding }
}

/// Returns the secrets that a payload contains in plain text: those that metadata declares, and values that look like
/// others. A payload that cannot be read is a finding of its own.
fn secrets(tree: &dyn Tree, metadata: &Metadata, file: &ResourceFile) -> Vec<Finding> {
    let Ok(payload) = repository::read_payload(tree, file) else { return Vec::new() };
    let rules = metadata.rules(&file.path).ok();
    let resolved = rules.as_ref().map(|rules| rules.resolved());
    let is_whole = resolved.is_some_and(|resolved| resolved.secret);
    let stated = resolved.map(|resolved| &resolved.secret_attributes[..]).unwrap_or_default();
    let mut declared: BTreeSet<Pointer> = stated.iter().cloned().collect();
    if is_whole {
        declared = BTreeSet::from([Pointer::default()]);
    }
    let likely = if is_whole { Vec::new() } else { detect(&payload) };
    let likely: BTreeSet<Pointer> = likely.into_iter().filter(|at| !declared.contains(at)).collect();
    let is_template =
        |at: &Pointer| at.get(&payload).is_some_and(|value| value.as_str().is_some() && has_template(value));
    declared.retain(|at| is_readable(&payload, std::slice::from_ref(at)) && !is_template(at));
    let finding = |what: &str, attributes: &BTreeSet<Pointer>| {
        let places = attributes
            .iter()
            .map(|at| if at.tokens().is_empty() { "the whole resource".to_owned() } else { at.to_string() });
        let message =
            format!("{}: {what} in plain text: {}", file.path, places.collect::<Vec<_>>().join(", "));
        let finding = Finding::new(Rule::Secret, Severity::Warning, &file.file, message);
        (!attributes.is_empty()).then(|| Finding { path: Some(file.path.to_string()), ..finding })
    };
    let declared = finding("secrets that metadata declares", &declared).map(|finding| Finding {
        hint: "store it with \"secret set\", and write {{secret .}} in its place",
        ..finding
    });
    let likely = finding("values that look like secrets", &likely);
    declared.into_iter().chain(likely).collect()
}
