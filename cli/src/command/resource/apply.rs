//! `resource apply`, `create` and `update`.

use std::collections::{HashMap, HashSet};
use std::num::NonZero;
use std::path::{Path, PathBuf};

use clap::Args;
use declarest_core::authoring::{Batch, Draft, SecretOptions, check_texts, with_templates_of};
use declarest_core::metadata::OperationName;
use declarest_core::metadata::document::Document;
use declarest_core::path::LogicalPath;
use declarest_core::sync::{Intent, Observed, Options, Plan, Resource, SavedPlan, Session, Step, Subject};

use super::change::Change;
use super::outcome::{self, show_plan};
use super::record;
use super::reported::Reported;
use super::source::MethodArgument;
use super::targets::{Targets, pruning};
use crate::error::Failure;
use crate::input::{Literals, Payload, PayloadArguments};
use crate::interrupt::block_on;
use crate::invocation::Invocation;
use crate::output::{Output, OutputPolicy};
use crate::report::ReportArguments;
use crate::target::{PathArguments, Target};
use crate::workspace::Workspace;

#[derive(Debug, Args)]
pub struct WriteArguments {
    #[command(flatten)]
    path: PathArguments,
    #[command(flatten)]
    input: PayloadArguments,
    /// Include all resources below the path
    #[arg(short, long)]
    recursive: bool,
    #[command(flatten)]
    method: MethodArgument,
    /// Save the resulting state of the server to the repository
    #[arg(long)]
    refresh: bool,
    /// End after the first failure; requests in flight are completed
    #[arg(long)]
    fail_fast: bool,
    #[command(flatten)]
    report: ReportArguments,
    /// Number of concurrent requests, instead of that of the context
    #[arg(long, value_name = "N")]
    parallel: Option<NonZero<u32>>,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub struct ApplyArguments {
    #[command(flatten)]
    write: WriteArguments,
    /// Also update resources that are equal
    #[arg(long)]
    force: bool,
    /// Print the plan, and change nothing
    #[arg(long, conflicts_with = "refresh")]
    dry_run: bool,
    /// Delete resources that a commit once declared and HEAD no longer declares; needs --recursive and --yes
    #[arg(long)]
    prune: bool,
    /// Delete only resources that a commit after this one removed
    #[arg(long, value_name = "REVISION", requires = "prune")]
    prune_base: Option<String>,
    /// Confirm deletions
    #[arg(short, long)]
    yes: bool,
    /// Apply a plan of "declarest plan --out", unless it is stale
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["positional", "flag", "recursive", "force", "prune", "prune_base", "payload", "content_type", "http_method"]
    )]
    plan: Option<PathBuf>,
}

/// `resource apply`: brings resources to their desired state.
pub fn apply(arguments: &ApplyArguments, invocation: &Invocation) -> Result<(), Failure> {
    if let Some(file) = &arguments.plan {
        return apply_plan(file, arguments, invocation);
    }
    if arguments.prune && !arguments.write.recursive {
        return Err(Failure::invalid("--prune needs --recursive"));
    }
    if arguments.prune && !arguments.yes && !arguments.dry_run {
        return Err(Failure::invalid(
            "--prune deletes resources of the server; look at \"declarest plan --prune\", and confirm it with --yes",
        ));
    }
    let options = Options { force: arguments.force, ..pruning() };
    let operations = [OperationName::Create, OperationName::Update];
    let prune_base = arguments.prune_base.clone();
    let kind = Kind { options, prune: arguments.prune, prune_base, only_plan: arguments.dry_run };
    write(&arguments.write, kind, &operations, invocation)
}

/// What a command does with its targets.
struct Kind {
    options: Options,
    /// Whether resources that Git no longer declares are deleted.
    prune: bool,
    /// The revision after which Git removed what is deleted.
    prune_base: Option<String>,
    /// Whether the plan is printed and nothing is written.
    only_plan: bool,
}

impl Kind {
    fn of(intent: Intent) -> Self {
        let options = Options { intent, ..Options::default() };
        Self { options, prune: false, prune_base: None, only_plan: false }
    }
}

/// Applies the plan in `file`.
fn apply_plan(file: &Path, arguments: &ApplyArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output_about_resources(policy(arguments.dry_run))?;
    let content = std::fs::read(file).map_err(Failure::read(file))?;
    let saved = SavedPlan::decode(&file.display().to_string(), &content)?;
    let path = LogicalPath::parse(&saved.subject.path)?;
    let options = Options { sealable: true, ..pruning() };
    let kind = Kind { options, prune: false, prune_base: None, only_plan: arguments.dry_run };
    block_on(async {
        let workspace =
            Workspace::connected_with(invocation, Document::default(), arguments.write.parallel).await?;
        let targets = Targets::planned(&workspace, &saved.subject)?;
        let run =
            Run { arguments: &arguments.write, kind, workspace: &workspace, output: &output, invocation };
        run.write_targets(&path, targets, Some(&saved)).await
    })
}

/// `resource create`: creates resources.
pub fn create(arguments: &WriteArguments, invocation: &Invocation) -> Result<(), Failure> {
    write(arguments, Kind::of(Intent::Create), &[OperationName::Create], invocation)
}

/// `resource update`: updates resources.
pub fn update(arguments: &WriteArguments, invocation: &Invocation) -> Result<(), Failure> {
    write(arguments, Kind::of(Intent::Update), &[OperationName::Update], invocation)
}

/// Returns the output policy. A dry run prints its plan.
const fn policy(dry_run: bool) -> OutputPolicy {
    if dry_run { OutputPolicy::Plan } else { OutputPolicy::JsonDefault }
}

fn write(
    arguments: &WriteArguments,
    kind: Kind,
    operations: &[OperationName],
    invocation: &Invocation,
) -> Result<(), Failure> {
    let output = invocation.output_about_resources(policy(kind.only_plan))?;
    let target = arguments.path.target(invocation)?;
    let overrides = arguments.method.overrides(operations)?;
    let input = arguments.input.payload(Literals::WithAssignments)?;
    if input.is_some() && arguments.recursive {
        return Err(Failure::invalid(
            "--recursive selects resources of the repository; remove it or the payload",
        ));
    }
    block_on(async {
        let workspace = Workspace::connected_with(invocation, overrides, arguments.parallel).await?;
        let run = Run { arguments, kind, workspace: &workspace, output: &output, invocation };
        run.write(&target, input).await
    })
}

struct Run<'a> {
    arguments: &'a WriteArguments,
    kind: Kind,
    workspace: &'a Workspace<'a>,
    output: &'a Output,
    invocation: &'a Invocation,
}

impl Run<'_> {
    async fn write(&self, target: &Target, input: Option<Payload>) -> Result<(), Failure> {
        let session = self.workspace.session()?;
        let targets = match input {
            Some(input) => Targets::written(&session, &target.path, input)?,
            None => Targets::planned(self.workspace, &self.subject(&session, &target.path))?,
        };
        self.write_targets(&target.path, targets, None).await
    }

    /// Returns what the command is about, in the words of a saved plan.
    fn subject(&self, session: &Session, path: &LogicalPath) -> Subject {
        Subject {
            server: session.client.address(),
            path: path.to_string(),
            recursive: self.arguments.recursive,
            prune: self.kind.prune,
            prune_base: self.kind.prune_base.clone(),
        }
    }

    /// Plans and applies. If `saved` is given, applies only if the plan equals it.
    async fn write_targets(
        &self,
        path: &LogicalPath,
        targets: Targets,
        saved: Option<&SavedPlan>,
    ) -> Result<(), Failure> {
        // In the order of commands that commit: the repository first.
        let saves = self.arguments.refresh && !self.kind.only_plan;
        let _repository = if saves { self.workspace.lock_repository()? } else { None };
        let _server = if self.kind.only_plan { None } else { self.workspace.lock_server()? };
        // Plan, and compare with the saved plan.
        let session = self.workspace.session()?;
        let shows = self.invocation.settings.verbosity > 0;
        let resources =
            if shows || self.arguments.refresh { targets.resources(&session) } else { Vec::new() };
        let (targeted, single) = (targets.selection.size(), targets.single);
        let fails_fast = self.arguments.fail_fast;
        let reported = Reported::new(&self.arguments.report, "apply", &targets.selection);
        let run = outcome::Run::new(self.invocation, targeted).failing_fast(fails_fast);
        let plan = run.plan(&session, targets.selection, &self.kind.options).await;
        let messages = &self.invocation.messages;
        let check = |plan: &Plan| outcome::check(&plan.failures, targeted, messages);
        if let Some(saved) = saved {
            check(&plan)?;
            let about = Subject { server: session.client.address(), ..saved.subject.clone() };
            saved.check(&about, &plan)?;
        }
        if self.kind.only_plan {
            show_plan(self.output, &plan, path.as_str(), &session, self.invocation)?;
        }
        if self.kind.only_plan || (fails_fast && !plan.failures.is_empty()) {
            let reported = reported.plan(&plan, self.invocation);
            return messages.first([check(&plan), reported]);
        }
        // Apply.
        for action in plan.actions.iter().filter(|action| action.step != Step::Skip) {
            let step = format!("{:?}", action.step).to_lowercase();
            messages.verbose(2, &format!("{step} {}", action.path));
        }
        let changes = run.apply(&session, plan).await;
        let reported = reported.applied(&changes.results, &changes.failures, self.invocation);
        // Show or save the written resources.
        let failed: HashSet<&LogicalPath> = changes.failures.iter().map(|failure| &failure.path).collect();
        let written = resources.into_iter().filter(|resource| !failed.contains(&resource.path)).collect();
        let looked = self.look_again(written, &changes.ids, shows.then_some(single)).await;
        // A failed write takes precedence over failures to report or to show the result.
        messages.first([changes.check(targeted, messages), reported, looked])
    }

    /// Reads the written resources, to save or to show them. `shown` is `None` to show nothing, `Some(true)` to show a
    /// single record, and `Some(false)` to show a list.
    async fn look_again(
        &self,
        written: Vec<Resource>,
        ids: &HashMap<LogicalPath, String>,
        shown: Option<bool>,
    ) -> Result<(), Failure> {
        if written.is_empty() {
            return Ok(());
        }
        let observed = record::observe(&self.workspace.remote()?, written, ids).await?;
        if self.arguments.refresh {
            self.refresh(&observed).await?;
        }
        match shown {
            Some(single) => record::show(self.output, &observed, single),
            None => Ok(()),
        }
    }

    /// Saves the state of the server, with the checks of every save. Placeholders and references of the repository are
    /// kept.
    async fn refresh(&self, observed: &[(Resource, Observed)]) -> Result<(), Failure> {
        let store = self.workspace.store()?;
        let (mut drafts, mut refused) = (Vec::new(), None);
        for (resource, observed) in observed {
            let Some(shown) = observed.payload.clone() else { continue };
            let path = resource.path.clone();
            let checked = check_texts(&path, &shown, &resource.payload)
                .and_then(|()| with_templates_of(&path, &resource.payload, shown));
            match checked {
                Ok(payload) => drafts.push(Draft::new(path, payload)),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        let batch = Batch { collection: None, drafts, observed: true };
        Change::new(self.workspace, &store, vec![batch], SecretOptions::default())?.carry_out().await?;
        refused.map_or(Ok(()), |error| Err(error.into()))
    }
}
