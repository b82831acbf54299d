//! Reports plans, and the failures of a command's resources.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::IsTerminal as _;
use std::sync::Arc;

use declarest_core::error::Category;
use declarest_core::path::LogicalPath;
use declarest_core::sync::{
    self, Action, Failure as Failed, FailureReason, Kept, Options, PRUNE, Plan, REPLACE, Selection, Session,
    Step, Stop,
};

use crate::error::{Cause, Failure};
use crate::hint;
use crate::interrupt;
use crate::invocation::Invocation;
use crate::output::applied::{Applied, Effect};
use crate::output::plan::{PlanView, markdown, not_deleted, text};
use crate::output::{Messages, Output, Progress};
use crate::pager;

/// A run of the engine with progress. Ctrl-C ends it after the requests in flight.
pub struct Run<'i> {
    invocation: &'i Invocation,
    progress: Arc<Progress>,
    stop: Stop,
}

impl<'i> Run<'i> {
    /// Returns a run over this number of resources.
    pub fn new(invocation: &'i Invocation, resources: usize) -> Self {
        let progress = Arc::new(Progress::new(&invocation.settings, resources));
        Self { invocation, progress, stop: Stop::default() }
    }

    /// Returns the run, ended by its first failure if `fails_fast`.
    pub fn failing_fast(self, fails_fast: bool) -> Self {
        if fails_fast {
            self.stop.request_at_failure("another resource failed (--fail-fast)");
        }
        self
    }

    /// Compares the resources of `selection` with the server.
    pub async fn plan(&self, session: &Session, selection: Selection, options: &Options) -> Plan {
        let progress: Arc<dyn sync::Progress> = self.progress.clone();
        let options = Options { progress: Some(progress), ..options.clone() };
        let former = selection.prune.iter().map(|candidate| candidate.path.clone()).collect();
        let mut plan = sync::plan(session, selection, &options, &self.stop).await;
        self.progress.end();
        self.redact(&mut plan.failures);
        keep_undecided(&mut plan, &former);
        plan.refuse_unsendable(session).await;
        // Nothing else shows that each resource would be created at a wrong address.
        let creates = plan.failures.is_empty() && plan.actions.iter().any(Action::is_missing);
        if let Some(hint) = hint::base_url(self.invocation).filter(|_| creates) {
            self.invocation.messages.note(&format!("hint: {hint}"));
        }
        plan
    }

    /// Removes the secrets of the command from messages that standard output and reports show.
    fn redact(&self, failures: &mut [Failed]) {
        for failure in failures {
            failure.message = self.invocation.messages.redacted(&failure.message);
        }
    }

    /// Executes a plan of this run, and prints the results.
    pub async fn apply(self, session: &Session, plan: Plan) -> Changes {
        let Self { invocation, progress, stop } = self;
        let targeted = plan.targeted;
        progress.applies(plan.actions.iter().filter(|action| action.step != Step::Skip).count());
        let report = interrupt::finish(&stop, sync::apply(session, plan, &stop)).await;
        progress.end();
        let results = progress.results();
        let applied = Applied { results: &results, report: &report };
        for (step, line) in applied.lines() {
            invocation.messages.result(Some(step), &line);
        }
        for kept in &report.kept {
            invocation.messages.result(None, &not_deleted(kept));
        }
        for (reason, alike) in by_reason(&report.unconfirmed.iter().collect::<Vec<_>>()) {
            let line = match &alike[..] {
                [unconfirmed] => unconfirmed.message.clone(),
                several => together(&reason, several),
            };
            invocation.messages.note(&format!("{line}; the option -vvv shows the answer"));
        }
        let counts = applied.counts();
        let is_interrupted = stop.reason() == Some(interrupt::REASON) && applied.not_attempted() > 0;
        if !is_interrupted && (targeted > 1 || results.len() > 1) {
            invocation.messages.result(None, &format!("Applied: {counts}."));
        }
        let interrupted = is_interrupted.then_some(counts);
        Changes { results, failures: report.failures, ids: report.ids, interrupted }
    }
}

/// The result of a run.
pub struct Changes {
    /// The executed actions.
    pub results: BTreeMap<LogicalPath, Effect>,
    /// The failures, sorted by path.
    pub failures: Vec<Failed>,
    /// The ids that the server assigned to created resources.
    pub ids: HashMap<LogicalPath, String>,
    /// The counts, if Ctrl-C ended the run before all resources were attempted.
    interrupted: Option<String>,
}

impl Changes {
    /// Returns a failure if some of the `targeted` resources failed, or were not attempted.
    pub fn check(mut self, targeted: usize, messages: &Messages) -> Result<(), Failure> {
        let Some(counts) = self.interrupted else { return check(&self.failures, targeted, messages) };
        self.failures.retain(|failure| failure.reason != FailureReason::NotAttempted);
        print(&self.failures.iter().collect::<Vec<_>>(), messages);
        Err(Failure::Interrupted(format!("interrupted: {counts}")))
    }
}

/// Keeps the resources that only `former` revisions declare and whose names do not decide which resource they are. This is
/// not a failure: the history of a repository cannot be corrected, so it would fail each later command.
fn keep_undecided(plan: &mut Plan, former: &HashSet<LogicalPath>) {
    let is_lasting = |failure: &mut Failed| {
        let is_of_former = former.contains(&failure.path)
            && matches!(failure.reason, FailureReason::Category(Category::Validation | Category::Conflict));
        if is_of_former && failure.is_of_answer {
            failure
                .message
                .push_str("; to leave out what earlier commits removed, state --prune-base REVISION");
        }
        is_of_former && !failure.is_of_answer
    };
    let undecided = plan.failures.extract_if(.., is_lasting);
    let kept = undecided.map(|Failed { path, message, .. }| Kept::new(path, message));
    plan.kept.extend(kept);
    plan.kept.sort_by(|a, b| a.path.cmp(&b.path));
}

/// Prints the plan for `path`.
pub fn show_plan(
    output: &Output,
    plan: &Plan,
    path: &str,
    session: &Session,
    invocation: &Invocation,
) -> Result<(), Failure> {
    let shown = if output.is_markdown() {
        markdown(plan, path, &session.client.address())
    } else {
        text(plan, invocation.settings.colour && std::io::stdout().is_terminal())
    };
    let changed = plan.actions.iter().filter(|action| action.step != Step::Skip);
    let paths: Vec<&str> = changed.map(|action| action.path.as_str()).collect();
    pager::show(output, &paths, &PlanView::new(plan), &shown, invocation)
}

/// Returns a failure if some of the `targeted` resources failed. A single failure is returned as it is. Several are
/// printed, and the command fails with the category of the first one by path that was attempted.
pub fn check(failures: &[Failed], targeted: usize, messages: &Messages) -> Result<(), Failure> {
    let mut failures: Vec<&Failed> = failures.iter().collect();
    failures.sort_by(|a, b| a.path.cmp(&b.path));
    // What was not attempted is a consequence of other failures.
    let attempted = failures.iter().find(|failure| failure.reason != FailureReason::NotAttempted);
    let Some(first) = attempted.or(failures.first()) else { return Ok(()) };
    if targeted <= 1 && failures.len() == 1 {
        return Err(Failure::Failed(cause(first)));
    }
    print(&failures, messages);
    let message = format!("{} of {targeted} resources failed", failures.len());
    let summary =
        Cause { answered: first.http_status.is_some(), ..Cause::new(first.reason.category(), message) };
    Err(Failure::Failed(summary).with_hint(|_| failures.iter().find_map(|failure| hint(failure))))
}

/// Returns what to do about a secret that the store does not have, or about a method that the server does not support.
fn hint(failure: &Failed) -> Option<String> {
    if failure.reason == FailureReason::SecretUnreadable(Category::NotFound) {
        let advice = "\"declarest secret list --missing\" prints the keys of all secrets that are not stored; store each \
                      with \"declarest secret set KEY\"";
        return Some(advice.to_owned());
    }
    let operation = match failure.operation {
        PRUNE | REPLACE => "delete",
        operation @ ("create" | "update" | "delete") => operation,
        _ => return None,
    };
    let (method, address, _) = request(own_message(failure))?;
    // The read before a write may be refused, too.
    let is_unsupported = matches!(failure.http_status, Some(405 | 501)) && method != "GET";
    is_unsupported.then(|| {
        format!("the server does not support {method} {address}; state another method or path in operations.{operation}")
    })
}

/// Returns the cause of a failure, whose message has the path of the resource.
fn cause(failure: &Failed) -> Cause {
    let path = Some(failure.path.to_string());
    let (http_status, hint) = (failure.http_status, hint(failure));
    let cause = Cause::new(failure.reason.category(), failure.with_path());
    Cause { path, http_status, answered: http_status.is_some(), hint, ..cause }
}

/// The maximum number of paths of failures with the same reason.
const NAMED: usize = 3;

/// Prints the failures. As text, those with the same reason share a line.
fn print(failures: &[&Failed], messages: &Messages) {
    if messages.are_records() {
        for failure in failures {
            messages.problem(&cause(failure));
        }
        return;
    }
    for (reason, alike) in by_reason(failures) {
        let cause = match &alike[..] {
            [failure] => cause(failure),
            several => Cause::new(several[0].reason.category(), together(&reason, several)),
        };
        messages.problem(&cause);
    }
}

/// Returns the failures with the reason that they share, in the order of the first ones.
fn by_reason<'f>(failures: &[&'f Failed]) -> Vec<(String, Vec<&'f Failed>)> {
    let mut reasons: Vec<(String, Vec<&Failed>)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for failure in failures {
        let next = reasons.len();
        let at = *known.entry(reason(failure)).or_insert(next);
        if at == next {
            reasons.push((reason(failure), Vec::new()));
        }
        reasons[at].1.push(failure);
    }
    reasons
}

/// Returns one line for failures with the same reason.
fn together(reason: &str, failures: &[&Failed]) -> String {
    let paths: Vec<&str> = failures.iter().take(NAMED).map(|failure| failure.path.as_str()).collect();
    let more = match failures.len() - paths.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let shared =
        sent(failures[0]).filter(|first| failures.iter().all(|failure| sent(failure) == Some(*first)));
    let with_address = shared
        .and_then(|(method, address)| Some(format!("{method} {address}{}", reason.strip_prefix(method)?)));
    let reason = with_address.as_deref().unwrap_or(reason);
    format!("{} resources ({}{more}): {reason}", failures.len(), paths.join(", "))
}

/// Returns the message without the path of the resource and without the address of its request, so that it is the same for
/// all resources with this reason.
fn reason(failure: &Failed) -> String {
    let (path, message) = (failure.path.as_str(), own_message(failure));
    match request(message) {
        Some((method, _, cause)) => format!("{method}: {}", without_path(cause, path)),
        None => without_path(message, path),
    }
}

/// Returns the message without the path of the resource at its beginning.
fn own_message(failure: &Failed) -> &str {
    let message = failure.message.strip_prefix(failure.path.as_str());
    let message = message.map_or(&*failure.message, |rest| rest.trim_start_matches([':', ' ']));
    // The breaker of the server quotes the failure of another request.
    message.split_once("; the last one: ").map_or(message, |(_, quoted)| quoted)
}

/// Returns method and address of the request that failed.
fn sent(failure: &Failed) -> Option<(&str, &str)> {
    request(own_message(failure)).map(|(method, address, _)| (method, address))
}

/// Returns method and address of the request with which the message begins, and the rest.
fn request(message: &str) -> Option<(&str, &str, &str)> {
    let (request, cause) = message.split_once(": ")?;
    let (method, address) = request.split_once(' ')?;
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    (is_method && address.starts_with('/')).then_some((method, address, cause))
}

/// Returns `message` without the path of its resource: as the beginning of a cause, it is left out.
fn without_path(message: &str, path: &str) -> String {
    let mut rest = message;
    let mut shown = String::with_capacity(message.len());
    while let Some((before, after)) = rest.split_once(path) {
        shown.push_str(before);
        rest = after;
        // The path may be a part of another one.
        let begins =
            before.chars().next_back().is_none_or(|last| last.is_whitespace() || "(\"".contains(last));
        let ends = rest.chars().next().is_none_or(|next| next.is_whitespace() || ":;,)\"".contains(next));
        let method = before.trim_end().rsplit(' ').next().unwrap_or_default();
        let is_request = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
        let cause = rest.strip_prefix(": ").filter(|_| before.is_empty() || before.ends_with(": "));
        match (begins && ends, cause) {
            (false, _) => shown.push_str(path),
            (true, Some(cause)) => rest = cause,
            (true, None) => shown.push_str(if is_request { "its address" } else { "it" }),
        }
    }
    shown + rest
}
