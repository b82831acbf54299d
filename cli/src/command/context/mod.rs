//! `declarest context`.

mod add;
mod change;
mod check;
mod edit;
mod show;
mod wizard;

use clap::{Args, Subcommand};

use crate::editor::EditorArgument;
use crate::error::Failure;
use crate::input::PayloadArguments;
use crate::invocation::Invocation;
use crate::report::ReportArguments;

#[derive(Debug, Subcommand)]
pub enum ContextCommand {
    /// Print a template of a catalogue
    PrintTemplate,
    /// Create the repository of a context, and fetch its metadata bundle
    Init(Name),
    /// Add contexts to the catalogue
    Add(AddArguments),
    /// Edit the catalogue, or a context with its credentials
    Edit {
        #[command(flatten)]
        name: Name,
        #[command(flatten)]
        editor: EditorArgument,
    },
    /// Replace a context of the catalogue
    Update(PayloadArguments),
    /// Validate a catalogue or a context without saving it; without input, the existing catalogue
    Validate(PayloadArguments),
    /// Set the current context
    Use(Name),
    /// Delete a context from the catalogue
    Delete(Name),
    /// Rename a context
    Rename {
        /// Current name
        from: Option<String>,
        /// New name
        to: Option<String>,
    },
    /// List the contexts
    List,
    /// Print the current context
    Current,
    /// Print a context as a catalogue with this context only
    Show(Name),
    /// Print a context with all overrides and placeholders resolved
    Resolve {
        #[command(flatten)]
        name: Name,
        // The global flag, which only here has a short form. Its values are those of the global flag.
        /// Override a value of the catalogue: managedServer.http.url, managedServer.http.healthCheck,
        /// managedServer.http.proxy.{http,https,noProxy}, metadata.{baseDir,bundle,bundleFile},
        /// repository.git.local.baseDir or repository.filesystem.baseDir
        #[arg(short, long, value_name = "KEY=VALUE")]
        set: Vec<String>,
    },
    /// Check the repository, metadata, server and secret store of a context
    Check {
        #[command(flatten)]
        name: Name,
        #[command(flatten)]
        report: ReportArguments,
    },
    /// Remove cached data of sessions
    Clean {
        /// Remove prompted credentials
        #[arg(long)]
        credentials_in_session: bool,
    },
    /// Print the code with which a shell stores prompted credentials until it exits
    #[command(subcommand, arg_required_else_help = true)]
    SessionHook(HookShell),
    /// Rewrite the catalogue in its canonical form
    Migrate,
}

/// A shell with a session hook.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum HookShell {
    #[command(
        about = "Print the code for bash; load it with: eval \"$(declarest context session-hook bash)\""
    )]
    Bash,
    #[command(about = "Print the code for zsh; load it with: eval \"$(declarest context session-hook zsh)\"")]
    Zsh,
}

/// The name of a context.
#[derive(Debug, Args)]
pub struct Name {
    /// Name of the context
    name: Option<String>,
}

#[derive(Debug, Args)]
pub struct AddArguments {
    /// Name for the context
    new_context_name: Option<String>,
    /// The context to add from a catalogue, or the name for a single context
    #[arg(long, value_name = "NAME")]
    context_name: Option<String>,
    /// Set it as the current context
    #[arg(long)]
    set_current: bool,
    #[command(flatten)]
    input: PayloadArguments,
}

/// Runs a command of the group.
pub fn run(command: &ContextCommand, invocation: &Invocation) -> Result<(), Failure> {
    match command {
        ContextCommand::PrintTemplate => show::template(invocation),
        ContextCommand::Init(name) => change::init(name.name.as_deref(), invocation),
        ContextCommand::Add(arguments) => add::add(arguments, invocation),
        ContextCommand::Edit { name, editor } => edit::edit(name.name.as_deref(), editor, invocation),
        ContextCommand::Update(input) => add::update(input, invocation),
        ContextCommand::Validate(input) => add::validate(input, invocation),
        ContextCommand::Use(name) => change::use_context(name.name.as_deref(), invocation),
        ContextCommand::Delete(name) => change::delete(name.name.as_deref(), invocation),
        ContextCommand::Rename { from, to } => change::rename(from.as_deref(), to.as_deref(), invocation),
        ContextCommand::List => show::list(invocation),
        ContextCommand::Current => show::current(invocation),
        ContextCommand::Show(name) => show::show(name.name.as_deref(), invocation),
        ContextCommand::Resolve { name, .. } => show::resolve(name.name.as_deref(), invocation),
        ContextCommand::Check { name, report } => check::check(name.name.as_deref(), report, invocation),
        ContextCommand::Clean { credentials_in_session } => {
            change::clean(*credentials_in_session, invocation)
        }
        ContextCommand::SessionHook(shell) => show::session_hook(*shell, invocation),
        ContextCommand::Migrate => change::migrate(invocation),
    }
}
