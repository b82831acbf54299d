//! Hints: what a user can do about a failure whose message does not say so.

use declarest_core::error::Category;
use declarest_core::path::LogicalPath;
use declarest_core::payload::fields::nearest;
use declarest_core::repository::{EntryKind, Tree};

use crate::error::Failure;
use crate::invocation::Invocation;

/// Returns a hint for a server whose base URL is probably wrong, or for the category of a failure, unless its message
/// states a correction, which follows a semicolon.
pub fn general(failure: &Failure, invocation: &Invocation) -> Option<String> {
    let (cause, context) = (failure.cause()?, invocation.opened_context()?);
    if let Some(advice) = base_url(invocation) {
        return Some(advice.to_owned());
    }
    if cause.category == Category::Transport && context.statuses.show_overload() {
        let advice = "the server fails some of the requests; if it cannot answer many at once, use --parallel 2, or set \
                      managedServer.http.requestThrottling.maxConcurrentRequests";
        return Some(advice.to_owned());
    }
    if cause.message.contains("; ") {
        return None;
    }
    let name = &context.name;
    let check = format!("\"declarest context check {name}\"");
    match cause.category {
        Category::Transport if cause.answered => None,
        Category::Transport => Some(format!("{check} shows which parts of the context can be reached")),
        Category::Auth if context.statuses.have_success() && context.statuses.reject_credentials() => {
            Some(format!(
                "the server rejects the credentials of context \"{name}\"; the requests that it accepted may not need any"
            ))
        }
        Category::Auth if context.statuses.have_success() => Some(format!(
            "the server accepted other requests of context \"{name}\"; its credentials may lack a right for this one"
        )),
        Category::Auth => {
            Some(format!("correct the credentials of context \"{name}\", and test them with {check}"))
        }
        _ => None,
    }
}

/// Returns a hint if the server answered 404 to each request.
pub fn base_url(invocation: &Invocation) -> Option<&'static str> {
    invocation.opened_context()?.statuses.are_all_missing().then_some(
        "the server answered 404 to each request; if its base URL is wrong, correct managedServer.http.url",
    )
}

/// Returns a hint that names the path of the repository that the author of `path` probably meant.
pub fn similar_path(tree: &dyn Tree, path: &LogicalPath) -> Option<String> {
    let mut meant = LogicalPath::root();
    for segment in path.segments() {
        let entries = tree.entries(meant.relative()).ok()??;
        let directories = entries.iter().filter(|entry| entry.kind == EntryKind::Directory);
        let mut names = directories.map(|entry| entry.name.as_str()).filter(|name| *name != "_");
        let name =
            if names.clone().any(|name| name == segment) { segment } else { nearest(segment, &mut names)? };
        meant = meant.child(name).ok()?;
    }
    (meant != *path).then(|| format!("did you mean {meant}?"))
}
