//! `declarest context`.

mod add;
mod change;
mod check;
mod show;

use clap::{Args, Subcommand};

use crate::error::Failure;
use crate::input::PayloadArguments;
use crate::invocation::Invocation;

#[derive(Debug, Subcommand)]
pub enum ContextCommand {
    /// Print a catalogue to fill in
    PrintTemplate,
    /// Make the repository of a context, and fetch the metadata bundle that it names
    Init(Name),
    /// Add contexts to the catalogue
    Add(AddArguments),
    /// Replace a context of the catalogue
    Update(PayloadArguments),
    /// Check a catalogue or a context without keeping it; the catalogue itself if none is given
    Validate(PayloadArguments),
    /// Make a context the current one
    Use(Name),
    /// Delete a context from the catalogue
    Delete(Name),
    /// Give a context another name
    Rename {
        /// The name that it has
        from: Option<String>,
        /// The name that it gets
        to: Option<String>,
    },
    /// List the contexts
    List,
    /// Print the current context
    Current,
    /// Print a context as a catalogue of its own
    Show(Name),
    /// Print a context as commands see it
    Resolve {
        #[command(flatten)]
        name: Name,
        /// Use this value instead of that of the catalogue
        #[arg(short, long, value_name = "KEY=VALUE")]
        set: Vec<String>,
    },
    /// Check whether what a context refers to works
    Check(Name),
    /// Forget what was remembered for the session
    Clean {
        /// Forget prompted credentials
        #[arg(long)]
        credentials_in_session: bool,
    },
    /// Print what makes a shell remember prompted credentials until it ends
    #[command(subcommand, arg_required_else_help = true)]
    SessionHook(HookShell),
    /// Rewrite the catalogue in its canonical form
    Migrate,
}

/// A shell that a session hook exists for.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum HookShell {
    #[command(about = "eval \"$(declarest context session-hook bash)\"")]
    Bash,
    #[command(about = "eval \"$(declarest context session-hook zsh)\"")]
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
    /// The context to take from a catalogue, or the name for a single one
    #[arg(long, value_name = "NAME")]
    context_name: Option<String>,
    /// Make it the current context
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
        ContextCommand::Update(input) => add::update(input, invocation),
        ContextCommand::Validate(input) => add::validate(input, invocation),
        ContextCommand::Use(name) => change::use_context(name.name.as_deref(), invocation),
        ContextCommand::Delete(name) => change::delete(name.name.as_deref(), invocation),
        ContextCommand::Rename { from, to } => change::rename(from.as_deref(), to.as_deref(), invocation),
        ContextCommand::List => show::list(invocation),
        ContextCommand::Current => show::current(invocation),
        ContextCommand::Show(name) => show::show(name.name.as_deref(), invocation),
        ContextCommand::Resolve { name, set } => show::resolve(name.name.as_deref(), set, invocation),
        ContextCommand::Check(name) => check::check(name.name.as_deref(), invocation),
        ContextCommand::Clean { credentials_in_session } => {
            change::clean(*credentials_in_session, invocation)
        }
        ContextCommand::SessionHook(shell) => show::session_hook(*shell, invocation),
        ContextCommand::Migrate => change::migrate(invocation),
    }
}
