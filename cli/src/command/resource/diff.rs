//! `resource diff` and `resource explain`.

use std::io::IsTerminal as _;

use clap::{Args, ValueEnum};
use declarest_core::sync::{self, Action, Options, Plan, Stop};

use super::outcome;
use super::targets::Targets;
use crate::error::Failure;
use crate::invocation::{Invocation, block_on};
use crate::output::diff::{DiffRecord, DiffStyle, Drift, section, summary};
use crate::output::{Output, OutputPolicy};
use crate::target::PathArguments;
use crate::workspace::Workspace;

#[derive(Debug, Args)]
pub struct DiffArguments {
    #[command(flatten)]
    path: PathArguments,
    /// Include all resources below the path
    #[arg(short, long)]
    recursive: bool,
    /// Print only the paths of resources that differ
    #[arg(long)]
    list: bool,
    /// Exit with 7 if there are differences
    #[arg(long)]
    exit_code: bool,
    /// When to use colour
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN")]
    color: When,
    /// Number of equal lines around a difference, or all
    #[arg(short = 'U', long, default_value = "3", value_name = "LINES", value_parser = parse_context)]
    unified: Context,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum When {
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Context {
    Lines(usize),
    All,
}

fn parse_context(text: &str) -> Result<Context, String> {
    if text == "all" {
        return Ok(Context::All);
    }
    text.parse().map(Context::Lines).map_err(|_| "use a number of lines, or all".to_owned())
}

/// Shows the differences between the repository and the server.
pub fn diff(arguments: &DiffArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::TextDefault)?;
    let target = arguments.path.target(invocation)?;
    block_on(async {
        let workspace = Workspace::connected(invocation).await?;
        let targets = Targets::declared(&workspace, &target.path, arguments.recursive)?;
        let (single, targeted) = (targets.single, targets.selection.targeted());
        let plan = compare(&workspace, targets).await?;
        let path = target.path.as_str();
        if arguments.list {
            list(&output, &plan)?;
        } else {
            let shown = text(arguments, invocation, &plan.actions, path, single);
            output.show(&records(&plan), Some(&shown))?;
        }
        outcome::check(&plan.failures, targeted, &invocation.messages)?;
        let differs = plan.actions.iter().any(|action| drift(action) != Drift::Unchanged);
        if arguments.exit_code && differs { Err(Failure::Differs) } else { Ok(()) }
    })
}

/// Lists the differences of one resource.
pub fn explain(arguments: &PathArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::JsonDefault)?;
    let target = arguments.target(invocation)?;
    block_on(async {
        let workspace = Workspace::connected(invocation).await?;
        let targets = Targets::declared(&workspace, &target.path, false)?;
        if !targets.single {
            return Err(Failure::invalid(format!(
                "{} is a collection; name one resource, or compare all with \"resource diff\"",
                target.path
            )));
        }
        let plan = compare(&workspace, targets).await?;
        outcome::check(&plan.failures, 1, &invocation.messages)?;
        let records = records(&plan);
        let lines: Vec<String> = records.iter().map(DiffRecord::line).collect();
        let text = output.is_text().then(|| lines.join("\n"));
        Ok(output.show(&records, text.as_deref())?)
    })
}

async fn compare(workspace: &Workspace<'_>, targets: Targets) -> Result<Plan, Failure> {
    let options = Options { keep_compared: true, ..Options::default() };
    Ok(sync::plan(&workspace.session()?, targets.selection, &options, &Stop::default()).await)
}

fn records(plan: &Plan) -> Vec<DiffRecord> {
    let compared = plan.actions.iter().filter_map(|action| Some((action, action.compared.as_ref()?)));
    let records = compared.flat_map(|(action, compared)| {
        compared.differences.iter().map(|difference| DiffRecord::new(action.path.as_str(), difference))
    });
    records.collect()
}

fn list(output: &Output, plan: &Plan) -> Result<(), Failure> {
    let drifting = plan.actions.iter().filter(|action| drift(action) != Drift::Unchanged);
    let paths: Vec<&str> = drifting.map(|action| action.path.as_str()).collect();
    Ok(output.show(&paths, Some(&paths.join("\n")))?)
}

fn drift(action: &Action) -> Drift {
    action.compared.as_ref().map_or(Drift::Unchanged, |compared| Drift::of(compared))
}

fn text(
    arguments: &DiffArguments,
    invocation: &Invocation,
    actions: &[Action],
    path: &str,
    single: bool,
) -> String {
    let style = DiffStyle {
        colour: match arguments.color {
            When::Always => true,
            When::Never => false,
            When::Auto => invocation.settings.colour && std::io::stdout().is_terminal(),
        },
        context: match arguments.unified {
            Context::Lines(lines) => Some(lines),
            Context::All => None,
        },
    };
    let drifts: Vec<Drift> = actions.iter().map(drift).collect();
    if drifts.iter().all(|drift| *drift == Drift::Unchanged) {
        return match (actions.is_empty(), single) {
            // All comparisons failed; the failures are printed separately.
            (true, _) => String::new(),
            (false, true) => format!("No differences for {path}."),
            (false, false) => format!("No differences under {path}."),
        };
    }
    let differing = actions.iter().filter_map(|action| {
        let compared = action.compared.as_ref().filter(|compared| !compared.differences.is_empty())?;
        Some(section(action.path.as_str(), compared, style))
    });
    let mut sections: Vec<String> = differing.collect();
    if drifts.len() > 1 {
        sections.push(summary(&drifts));
    }
    sections.join("\n")
}
