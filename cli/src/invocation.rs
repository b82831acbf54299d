//! The invocation of a command: its settings, output, environment and context.

use std::cell::OnceCell;
use std::num::NonZero;

use declarest_core::server::Client;

use crate::context::{self, CatalogueError, ResolvedContext, Stored};
use crate::environment::Environment;
use crate::error::Failure;
use crate::output::{Messages, Output, OutputError, OutputPolicy};
use crate::settings::{GlobalFlags, Settings};

/// One run of the program: its settings, its output, its environment and its context.
pub struct Invocation {
    /// The settings from flags and environment.
    pub settings: Settings,
    /// The variables of the process.
    pub environment: Environment,
    /// The messages on standard error.
    pub messages: Messages,
    /// The parser of the command line.
    parser: clap::Command,
    names: Vec<String>,
    context: OnceCell<ResolvedContext>,
}

impl Invocation {
    /// Creates an invocation. `names` are those of the command and its groups, outermost first.
    pub fn new(
        parser: clap::Command,
        names: Vec<String>,
        flags: &GlobalFlags,
        environment: Environment,
    ) -> Self {
        let environment = match catalogue(flags) {
            Some(file) => environment.with("DECLAREST_CONTEXTS_FILE", file),
            None => environment,
        };
        let settings = Settings::new(flags, &environment);
        let messages = Messages::new(&settings);
        Self { messages, settings, environment, parser, names, context: OnceCell::new() }
    }

    /// Returns the parser of the command line.
    pub fn parser(&self) -> clap::Command {
        self.parser.clone()
    }

    /// Returns the output for a command with this output policy, whose result does not name resources. Call it first,
    /// because it checks `--output`.
    pub fn output(&self, policy: OutputPolicy) -> Result<Output, Failure> {
        let output = self.output_about_resources(policy)?;
        if output.is_names() { Err(OutputError::NoNames.into()) } else { Ok(output) }
    }

    /// Like [`Self::output`], for a command that can also print only the paths of the resources of its result.
    pub fn output_about_resources(&self, policy: OutputPolicy) -> Result<Output, Failure> {
        Ok(Output::new(&self.names.join(" "), policy, &self.settings.output)?)
    }

    /// Returns the failure of a missing argument.
    pub fn usage(&self, message: impl Into<String>) -> Failure {
        let mut root = self.parser();
        root.build();
        let command =
            self.names.iter().try_fold(&mut root, |command, name| command.find_subcommand_mut(name));
        let usage = command.map_or_else(String::new, |command| command.render_usage().to_string());
        Failure::Usage { usage, message: message.into() }
    }

    /// Returns the context that the flag, the environment or the catalogue selects. The first call resolves it and
    /// prints warnings about insecure settings.
    pub fn context(&self) -> Result<&ResolvedContext, Failure> {
        self.context_named(None)
    }

    /// Returns a client of the managed server of `context`, with the limits of the command line. `parallel` replaces the
    /// configured number of concurrent requests.
    pub fn client(
        &self,
        context: &ResolvedContext,
        parallel: Option<NonZero<u32>>,
    ) -> Result<Client, Failure> {
        let mut client = context.server(parallel)?;
        if let Some(timeout) = self.settings.timeout {
            client = client.with_attempt_timeout(timeout);
        }
        if let Some(retries) = self.settings.retries {
            client = client.with_retries(retries);
        }
        Ok(client)
    }

    /// Returns the context if the command has resolved it.
    pub fn opened_context(&self) -> Option<&ResolvedContext> {
        self.context.get()
    }

    /// Like [`Self::context`], for commands with the name as an argument, which must agree with the flag.
    pub fn context_named(&self, argument: Option<&str>) -> Result<&ResolvedContext, Failure> {
        if let Some(context) = self.context.get() {
            return Ok(context);
        }
        let context = self.resolve(argument)?;
        context.warnings().iter().for_each(|warning| self.messages.warn(warning));
        Ok(self.context.get_or_init(|| context))
    }

    /// Returns the invocation with the context `name` of `stored`, which need not be that of the file.
    pub fn on(&self, stored: &Stored, name: &str) -> Result<Self, Failure> {
        let overrides = &self.settings.overrides;
        let context = ResolvedContext::new(stored, Some(name), overrides, &self.environment, &self.messages)?;
        Ok(Self {
            settings: self.settings.clone(),
            environment: self.environment.clone(),
            messages: self.messages.clone(),
            parser: self.parser(),
            names: self.names.clone(),
            context: OnceCell::from(context),
        })
    }

    /// Resolves a context without warnings.
    pub fn resolve(&self, argument: Option<&str>) -> Result<ResolvedContext, Failure> {
        let name = self.context_name(argument)?;
        let stored = self.catalogue()?;
        let overrides = &self.settings.overrides;
        ResolvedContext::new(&stored, name.as_deref(), overrides, &self.environment, &self.messages)
    }

    /// Returns the name of a context from an argument, the flag or the environment, which must agree.
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

    /// Loads the catalogue of contexts.
    pub fn catalogue(&self) -> Result<Stored, Failure> {
        Ok(Stored::load(context::file(&self.environment)?)?)
    }

    /// Loads the catalogue of contexts to edit its text, which need not be valid.
    pub fn catalogue_text(&self) -> Result<Stored, Failure> {
        Ok(Stored::load_text(context::file(&self.environment)?)?)
    }

    /// Loads the catalogue of contexts for a change. Other changes wait until the result is dropped.
    pub fn catalogue_to_change(&self) -> Result<Stored, Failure> {
        Ok(Stored::load_to_change(context::file(&self.environment)?)?)
    }
}

/// Returns the catalogue that the flag names, below the working directory unless it is absolute or starts with `~`.
fn catalogue(flags: &GlobalFlags) -> Option<String> {
    let file = flags.contexts_file.as_deref().map(str::trim).filter(|file| !file.is_empty())?;
    if file.starts_with('~') {
        return Some(file.to_owned());
    }
    let absolute = std::path::absolute(file).ok().and_then(|file| file.into_os_string().into_string().ok());
    Some(absolute.unwrap_or_else(|| file.to_owned()))
}
