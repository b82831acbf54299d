//! What a running command knows about how it was started, where it tells what, and which context it is for.

use std::cell::OnceCell;
use std::future::Future;

use crate::args;
use crate::context::{self, CatalogueError, ResolvedContext, Stored};
use crate::environment::Environment;
use crate::error::Failure;
use crate::output::{Messages, Output, OutputPolicy};
use crate::settings::{GlobalFlags, Settings};

/// One run of the program: its settings, its output, its environment and its context.
pub struct Invocation {
    /// What flags and environment say.
    pub settings: Settings,
    /// The variables of the process.
    pub environment: Environment,
    /// What goes to standard error.
    pub messages: Messages,
    names: Vec<String>,
    context: OnceCell<ResolvedContext>,
}

impl Invocation {
    /// `names` are those of the command and its groups.
    pub fn new(names: Vec<String>, flags: &GlobalFlags, environment: Environment) -> Self {
        let settings = Settings::new(flags, &environment);
        Self { messages: Messages::new(&settings), settings, environment, names, context: OnceCell::new() }
    }

    /// Where results go, for a command whose result has these forms. Ask before doing anything.
    pub fn output(&self, policy: OutputPolicy) -> Result<Output, Failure> {
        Ok(Output::new(&self.names.join(" "), policy, &self.settings.output)?)
    }

    /// The failure of a command whose argument is missing.
    pub fn usage(&self, message: impl Into<String>) -> Failure {
        Failure::Usage { usage: args::usage(&self.names), message: message.into() }
    }

    /// The context that flag, environment or catalogue choose. The first call resolves it and warns about
    /// what is dangerous in it.
    pub fn context(&self) -> Result<&ResolvedContext, Failure> {
        self.context_named(None)
    }

    /// [`Self::context`] for commands that take its name as an argument, which must agree with the flag.
    pub fn context_named(&self, argument: Option<&str>) -> Result<&ResolvedContext, Failure> {
        if let Some(context) = self.context.get() {
            return Ok(context);
        }
        let context = self.resolve(argument, &[])?;
        context.warnings().iter().for_each(|warning| self.messages.warn(warning));
        Ok(self.context.get_or_init(|| context))
    }

    /// Resolves a context without warnings, with overrides of the form `key=value`.
    pub fn resolve(&self, argument: Option<&str>, set: &[String]) -> Result<ResolvedContext, Failure> {
        let name = self.context_name(argument)?;
        let stored = self.catalogue()?;
        ResolvedContext::new(&stored, name.as_deref(), set, &self.environment, &self.messages)
    }

    /// The name of a context from an argument, the flag or the environment, which must agree.
    pub fn context_name(&self, argument: Option<&str>) -> Result<Option<String>, Failure> {
        let argument = argument.map(str::trim).filter(|name| !name.is_empty());
        match (argument, self.settings.context.as_deref()) {
            (Some(argument), Some(chosen)) if argument != chosen => {
                let both =
                    format!("\"{argument}\" as an argument, \"{chosen}\" by --context or DECLAREST_CONTEXT");
                Err(CatalogueError::NameMismatch(both).into())
            }
            (argument, chosen) => Ok(argument.or(chosen).map(str::to_owned)),
        }
    }

    /// The catalogue of contexts as it stands in its file.
    pub fn catalogue(&self) -> Result<Stored, Failure> {
        Ok(Stored::load(context::file(&self.environment)?)?)
    }
}

/// Runs what waits for the network.
pub fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::internal(format!("cannot start threads: {error}")))?;
    runtime.block_on(work)
}
