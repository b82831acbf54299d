//! What a running command knows about how it was started, and where it tells what.

use crate::args;
use crate::environment::Environment;
use crate::error::Failure;
use crate::output::{Messages, Output, OutputPolicy};
use crate::settings::{GlobalFlags, Settings};

/// One run of the program: its settings, its output and its environment.
pub struct Invocation {
    /// What flags and environment say.
    pub settings: Settings,
    /// The variables of the process.
    pub environment: Environment,
    /// What goes to standard error.
    pub messages: Messages,
    names: Vec<String>,
}

impl Invocation {
    /// `names` are those of the command and its groups.
    pub fn new(names: Vec<String>, flags: &GlobalFlags, environment: Environment) -> Self {
        let settings = Settings::new(flags, &environment);
        Self { messages: Messages::new(&settings), settings, environment, names }
    }

    /// Where results go, for a command whose result has these forms. Ask before doing anything.
    pub fn output(&self, policy: OutputPolicy) -> Result<Output, Failure> {
        Ok(Output::new(&self.names.join(" "), policy, &self.settings.output)?)
    }

    /// The failure of a command whose argument is missing.
    pub fn usage(&self, message: impl Into<String>) -> Failure {
        Failure::Usage { usage: args::usage(&self.names), message: message.into() }
    }
}
