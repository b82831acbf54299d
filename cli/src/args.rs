//! The command line: the commands, their parser, and the dispatch to the command that runs.

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use declarest_core::payload::fields::nearest;

use crate::command::completion::{self, Shell};
use crate::command::context::{self, ContextCommand};
use crate::command::contract::{self, ContractCommand};
use crate::command::init::{self, InitArguments};
use crate::command::operator::{self, OperatorCommand};
use crate::command::plan::{self, PlanArguments};
use crate::command::repository::{self, RepositoryCommand};
use crate::command::resource::{self, ImportArguments, ResourceCommand};
use crate::command::secret::{self, SecretCommand};
use crate::command::server::{self, ServerCommand};
use crate::command::validate::{self, ValidateArguments};
use crate::command::{reference, schemas, version};
use crate::environment::{Environment, parse_boolean};
use crate::error::{Cause, Failure};
use crate::invocation::Invocation;
use crate::settings::GlobalFlags;
use crate::{examples, hint, output, terminal};

const VARIABLES: &str = "\
Environment variables:
  DECLAREST_CONTEXT              Default of --context
  DECLAREST_CONTEXTS_FILE        Default of --contexts-file; otherwise ~/.declarest/configs/contexts.yaml
  DECLAREST_CONTEXT_CREDENTIAL_<NAME>_USERNAME, _PASSWORD
                                 Used instead of prompts for the credential <NAME>
  DECLAREST_PROMPT_AUTH_SESSION_ID
                                 Session that prompted credentials are stored for
  DECLAREST_OUTPUT               Default of --output
  DECLAREST_VERBOSE              Default of --verbose, 0 to 3
  DECLAREST_VERBOSE_INSECURE     Default of --verbose-insecure
  DECLAREST_SKIP_RESULT_MESSAGE  Default of --skip-result-message
  DECLAREST_IGNORE_WARNINGS      Default of --ignore-warnings
  DECLAREST_NO_COLOR, NO_COLOR   Default of --no-color
  DECLAREST_PAGER, PAGER         Pager for long text on a terminal; default less";

/// Write, compare and apply desired state from the command line
#[derive(Debug, Parser)]
#[command(
    name = "declarest",
    bin_name = "declarest",
    version = version::TEXT,
    arg_required_else_help = true,
    disable_help_flag = true,
    after_help = VARIABLES
)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,

    #[command(flatten)]
    pub global: GlobalFlags,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a context and a repository for a server, and import its resources
    Init(InitArguments),
    /// Manage contexts: repositories, servers and credentials
    #[command(subcommand, arg_required_else_help = true)]
    Context(ContextCommand),
    /// Manage the repository of a context: history, remote and uncommitted changes
    #[command(subcommand, arg_required_else_help = true)]
    Repository(RepositoryCommand),
    /// Read, compare and change resources
    #[command(subcommand, arg_required_else_help = true)]
    Resource(ResourceCommand),
    /// Manage secrets in a store, and their placeholders in files
    #[command(subcommand, arg_required_else_help = true)]
    Secret(SecretCommand),
    /// Save all resources that the server lists to the repository
    Import(ImportArguments),
    /// Show what an apply would create, update and delete, and optionally save the plan
    Plan(PlanArguments),
    /// Check the files of the repository without requests
    Validate(ValidateArguments),
    /// Check and inspect the managed server
    #[command(subcommand, arg_required_else_help = true)]
    Server(ServerCommand),
    /// Check contracts of services, and compare them with Kubernetes objects
    #[command(subcommand, arg_required_else_help = true)]
    Contract(ContractCommand),
    /// Show the operator's objects in a cluster, and control its policies
    #[command(subcommand, arg_required_else_help = true)]
    Operator(OperatorCommand),
    /// Print a completion script for a shell
    #[command(subcommand, arg_required_else_help = true)]
    Completion(Shell),
    /// Write the JSON Schemas of files that users edit
    #[command(hide = true)]
    Schemas {
        /// Directory to write them to
        #[arg(long)]
        dir: std::path::PathBuf,
    },
    /// Write the manual of all commands
    #[command(hide = true)]
    Reference {
        /// File for the manual in Markdown
        #[arg(long, value_name = "FILE")]
        markdown: Option<std::path::PathBuf>,
        /// Directory for man pages
        #[arg(long, value_name = "DIRECTORY")]
        man: Option<std::path::PathBuf>,
    },
    /// Print the version, commit and date of this build
    Version,
}

impl Args {
    /// Runs the command, prints its failure or success, and returns the exit code.
    pub fn run(&self, invocation: &Invocation) -> ExitCode {
        if invocation.settings.no_input {
            terminal::refuse_input();
        }
        let footer = self.command.prints_footer() && !invocation.settings.skip_result_message;
        match self.command.run(invocation) {
            Ok(()) => {
                if footer {
                    invocation.messages.success();
                }
                ExitCode::SUCCESS
            }
            // The output has shown the differences.
            Err(failure @ Failure::Differs) => failure.exit_code(),
            Err(failure) => {
                let failure = failure.with_hint(|failure| hint::general(failure, invocation));
                invocation.messages.failure(&failure, footer);
                failure.exit_code()
            }
        }
    }
}

impl Command {
    fn run(&self, invocation: &Invocation) -> Result<(), Failure> {
        // An invalid --output is an error also for commands without a result.
        output::check_flag(&invocation.settings.output)?;
        match self {
            Self::Init(arguments) => init::run(arguments, invocation),
            Self::Context(command) => context::run(command, invocation),
            Self::Repository(command) => repository::run(command, invocation),
            Self::Resource(command) => resource::run(command, invocation),
            Self::Secret(command) => secret::run(command, invocation),
            Self::Import(arguments) => resource::import(arguments, invocation),
            Self::Plan(arguments) => plan::run(arguments, invocation),
            Self::Validate(arguments) => validate::run(arguments, invocation),
            Self::Server(command) => server::run(command, invocation),
            Self::Contract(command) => contract::run(command, invocation),
            Self::Operator(command) => operator::run(command, invocation),
            Self::Completion(shell) => completion::run(*shell, invocation),
            Self::Schemas { dir } => schemas::run(dir),
            Self::Reference { markdown, man } => {
                reference::run(markdown.as_deref(), man.as_deref(), invocation)
            }
            Self::Version => version::run(invocation),
        }
    }

    /// Returns whether the last line on standard error reports success or failure, as for commands that make changes
    /// and usually print nothing.
    fn prints_footer(&self) -> bool {
        match self {
            Self::Repository(command) => matches!(command, RepositoryCommand::Commit(_)),
            Self::Resource(command) => command.prints_footer(),
            _ => false,
        }
    }
}

/// The result of reading the command line.
pub enum Request {
    /// Run this command.
    Run(Box<Args>, Box<Invocation>),
    /// Complete the last of these words, with descriptions or without.
    Complete(Vec<String>, bool, Box<Invocation>),
    /// Help was printed, and nothing is left to do.
    Done,
}

/// Returns the parser of the command line.
pub fn parser() -> clap::Command {
    conventional(definition())
}

/// Returns the commands with their examples. They accept only the plain syntax, which is what help shows.
fn definition() -> clap::Command {
    examples::added(Args::command())
}

/// Adds the syntax that scripts use: `--yes=false` for every switch, the last value of a repeated flag, and values that
/// start with a dash.
fn conventional(command: clap::Command) -> clap::Command {
    command.args_override_self(true).mut_args(conventional_flag).mut_subcommands(conventional)
}

fn conventional_flag(flag: Arg) -> Arg {
    if flag.is_positional() {
        return flag;
    }
    match flag.get_action() {
        ArgAction::SetTrue => flag
            .action(ArgAction::Set)
            .num_args(0..=1)
            .require_equals(true)
            .default_value("false")
            .default_missing_value("true")
            .value_parser(parse_boolean)
            .hide_default_value(true)
            .hide_possible_values(true),
        // An optional value follows "=", so it may start with any character.
        ArgAction::Set | ArgAction::Append if !flag.is_require_equals_set() => flag.allow_hyphen_values(true),
        _ => flag,
    }
}

/// Reads the command line of the process. Help, also that of a group without a command, is printed to standard
/// output and is a success.
pub fn read() -> Result<Request, Failure> {
    if let Some(request) = completion_request() {
        return Ok(request);
    }
    let parsed = parser().try_get_matches().and_then(|matches| {
        let args = Args::from_arg_matches(&matches)?;
        Ok((args, command_names(&matches)))
    });
    let mut error = match parsed {
        Ok((args, _)) if args.global.loses_overrides() => {
            return Err(Failure::Syntax(
                "--set must be given either before or after the command, because one place replaces the other\n".to_owned(),
            ));
        }
        Ok((args, names)) => {
            let invocation = Invocation::new(definition(), names, &args.global, Environment::of_process());
            return Ok(Request::Run(Box::new(args), Box::new(invocation)));
        }
        Err(error) => error,
    };
    suggest_nearest(&mut error);
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            output::print(help(&error).as_bytes())?;
            Ok(Request::Done)
        }
        ErrorKind::DisplayVersion => {
            output::print(error.to_string().as_bytes())?;
            Ok(Request::Done)
        }
        // A value that is not among the choices of a flag; without a value, the syntax is wrong.
        ErrorKind::InvalidValue if has_value(&error) => Err(Failure::invalid(error.render().to_string())),
        // The forms of a report are choices, too.
        ErrorKind::ValueValidation if is_about(&error, "--report ") => {
            Err(Failure::invalid(error.render().to_string()))
        }
        _ => Err(Failure::Syntax(plain(&error).unwrap_or(error).render().to_string())),
    }
}

/// Returns the same error of the parser that accepts only the plain syntax. Its usage does not show the values that
/// switches accept.
fn plain(error: &clap::Error) -> Option<clap::Error> {
    let mut plain = definition().try_get_matches().err()?;
    suggest_nearest(&mut plain);
    let same = |kind| plain.get(kind).is_none() == error.get(kind).is_none();
    let same = plain.kind() == error.kind()
        && [ContextKind::InvalidArg, ContextKind::InvalidValue].into_iter().all(same);
    same.then_some(plain)
}

/// Prints the failure of a command line that is not valid, so that its flags are not known.
pub fn report(failure: &Failure) {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let separate = words.windows(2).any(|words| words[0] == "--error-format" && words[1] == "json");
    if separate || words.iter().any(|word| word == "--error-format=json") {
        let cause = Cause::new(failure.category(), failure.message());
        output::to_stderr(&output::error_record(failure.code(), &cause));
    } else {
        output::to_stderr(failure.message());
    }
}

/// Keeps only the suggestion that is nearest to an unknown command. A name without one may be that of a command in a
/// group.
fn suggest_nearest(error: &mut clap::Error) {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidSubcommand).cloned() else {
        return;
    };
    let similar = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(similar)) => similar.clone(),
        Some(ContextValue::String(similar)) => vec![similar.clone()],
        _ => Vec::new(),
    };
    let near = nearest(&unknown, similar.iter().map(String::as_str)).map(str::to_owned);
    if let Some(suggestion) = near.or_else(|| in_a_group(&unknown)) {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![suggestion]));
    }
}

/// Returns the command in a group whose name is nearest to `unknown`, with the group.
fn in_a_group(unknown: &str) -> Option<String> {
    let root = Args::command();
    let groups = root
        .get_subcommands()
        .flat_map(|group| group.get_subcommands().map(move |command| (command.get_name(), group.get_name())));
    let commands: Vec<(&str, &str)> = groups.collect();
    let near = nearest(unknown, commands.iter().map(|(name, _)| *name))?;
    // The group of resources is the most used one.
    let group = commands.iter().filter(|(name, _)| *name == near).map(|(_, group)| *group);
    let group = group.max_by_key(|group| *group == "resource")?;
    Some(format!("{group} {near}"))
}

/// Returns the request of a completion script. Its words are not parsed as a command line, because they are incomplete.
fn completion_request() -> Option<Request> {
    let mut words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let describe = match words.next()?.as_str() {
        "__complete" => true,
        "__completeNoDesc" => false,
        _ => return None,
    };
    let words: Vec<String> = words.collect();
    // The global flags before the last word select the context.
    let before = words.split_last().map_or(&[][..], |(_, before)| before);
    let line = std::iter::once("declarest".to_owned()).chain(before.iter().cloned());
    let matches = parser().ignore_errors(true).try_get_matches_from(line).ok();
    let flags = matches.map(|matches| {
        let below = |matches: &ArgMatches| matches.subcommand().map(|(_, below)| below.clone());
        let innermost = std::iter::successors(Some(matches), |matches| below(matches)).last();
        innermost.and_then(|matches| GlobalFlags::from_arg_matches(&matches).ok()).unwrap_or_default()
    });
    let flags = flags.unwrap_or_default().without_messages();
    let invocation = Invocation::new(definition(), Vec::new(), &flags, Environment::of_process());
    Some(Request::Complete(words, describe, Box::new(invocation)))
}

/// Returns the help without the values that switches accept. If an argument before `--help` is accepted only by
/// [`parser`], the help shows them.
fn help(error: &clap::Error) -> String {
    match examples::grouped(definition()).try_get_matches() {
        Err(plain) if plain.kind() == error.kind() => plain.render().to_string(),
        _ => error.render().to_string(),
    }
}

fn has_value(error: &clap::Error) -> bool {
    matches!(error.get(ContextKind::InvalidValue), Some(ContextValue::String(value)) if !value.is_empty())
}

fn is_about(error: &clap::Error, flag: &str) -> bool {
    matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(found)) if found.starts_with(flag))
}

/// Returns the names of the command and its groups, outermost first.
fn command_names(matches: &ArgMatches) -> Vec<String> {
    let below =
        |matches: &ArgMatches| matches.subcommand().map(|(name, below)| (name.to_owned(), below.clone()));
    std::iter::successors(below(matches), |(_, matches)| below(matches)).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `check` with the words of each command and its flags.
    fn for_each_flag(check: &mut impl FnMut(&[String], &Arg)) {
        fn visit(command: &clap::Command, words: &[String], check: &mut impl FnMut(&[String], &Arg)) {
            command.get_arguments().filter(|flag| !flag.is_positional()).for_each(|flag| check(words, flag));
            for below in command.get_subcommands() {
                let words = [words, &[below.get_name().to_owned()]].concat();
                visit(below, &words, check);
            }
        }
        let mut root = Args::command();
        root.build();
        visit(&root, &["declarest".to_owned()], check);
    }

    /// The error about `flag`, if the parser does not accept `given`. Other arguments may be missing.
    fn refused(words: &[String], flag: &Arg, given: &[String]) -> Option<String> {
        let error = parser().try_get_matches_from(words.iter().chain(given)).err()?;
        let unrelated = [
            ErrorKind::MissingRequiredArgument,
            ErrorKind::MissingSubcommand,
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
        ];
        let choice = error.kind() == ErrorKind::InvalidValue && !flag.get_possible_values().is_empty();
        (!unrelated.contains(&error.kind()) && !choice)
            .then(|| format!("{} {}: {error}", words.join(" "), given.join(" ")))
    }

    #[test]
    fn every_switch_accepts_a_value_and_every_flag_may_be_repeated() {
        let (mut refusals, mut checked) = (Vec::new(), 0);
        for_each_flag(&mut |words, flag| {
            let name = flag.get_long().unwrap_or_default();
            if matches!(flag.get_action(), ArgAction::Help | ArgAction::Version) {
                return;
            }
            let long = |value: &str| format!("--{name}{value}");
            let optional = flag.get_num_args().is_some_and(|count| count.min_values() == 0);
            let mut forms = match flag.get_action() {
                ArgAction::SetTrue => vec![
                    vec![long("=true")],
                    vec![long("=false")],
                    vec![long("=1"), long("=f")],
                    vec![long(""), long("")],
                ],
                _ if optional => vec![vec![long(""), long("")]],
                _ if ["max-count", "parallel", "retries", "timeout", "unified", "wait"].contains(&name) => {
                    vec![vec![long(""), "1".to_owned(), long("=2")]]
                }
                _ if name == "report" => {
                    vec![vec![long(""), "github".to_owned(), long("=junit=-x"), long("=sarif=a")]]
                }
                _ => vec![
                    vec![long(""), "-x".to_owned()],
                    vec![long("=-x"), long("=--y")],
                    vec![long("=a"), long(""), "b".to_owned()],
                ],
            };
            if let Some(short) = flag.get_short() {
                let of_short = |form: &Vec<String>| {
                    form.iter().map(|word| word.replacen(&long(""), &format!("-{short}"), 1)).collect()
                };
                forms.extend(forms.clone().iter().map(of_short));
            }
            for form in forms {
                checked += 1;
                refusals.extend(refused(words, flag, &form));
            }
        });
        assert!(checked > 300, "{checked}");
        assert!(refusals.is_empty(), "{}", refusals.join("\n"));
    }

    #[test]
    fn the_last_value_counts() {
        let parse = |line: &str| {
            let matches = parser().try_get_matches_from(line.split(' ')).unwrap();
            Args::from_arg_matches(&matches).unwrap()
        };
        let args = parse("declarest resource delete /a --yes --yes=false --source both --source repository");
        let shown = format!("{:?}", args.command);
        assert!(shown.contains("yes: false") && shown.contains("source: Repository"), "{shown}");
    }
}
