//! `secret set`.

use std::io::Read as _;

use clap::Args;
use declarest_core::secrets::Secret;

use super::key::KeyFlags;
use super::open;
use crate::error::Failure;
use crate::interrupt::block_on;
use crate::invocation::Invocation;
use crate::terminal;

/// Maximum size of a value in bytes: that of a resource's payload.
const LARGEST: u64 = 4 << 20;

#[derive(Debug, Args)]
pub struct SetArguments {
    /// KEY, PATH KEY or PATH:KEY, followed by the value
    #[arg(value_name = "KEY VALUE", num_args = 0..=3)]
    positional: Vec<String>,

    #[command(flatten)]
    flags: KeyFlags,

    #[command(flatten)]
    source: ValueSource,

    /// Accept an empty value
    #[arg(long)]
    allow_empty: bool,
}

/// Sources of a value that do not appear in process lists and shell histories.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct ValueSource {
    /// File to read the value from; a final line break is removed
    #[arg(long, value_name = "FILE")]
    from_file: Option<std::path::PathBuf>,

    /// Read the value from standard input; a final line break is removed
    #[arg(long)]
    stdin: bool,

    /// Prompt for the value
    #[arg(long)]
    prompt: bool,
}

/// The message of a command that lacks the value, and maybe the key.
const KEY_AND_VALUE: &str = "secret key and value are required: give them as KEY VALUE, or the key with --prompt, \
                             --stdin or --from-file";

/// Stores a secret.
pub fn set(arguments: &SetArguments, invocation: &Invocation) -> Result<(), Failure> {
    arguments.flags.check()?;
    let mut positional: Vec<&str> = arguments.positional.iter().map(String::as_str).collect();
    let value = if arguments.source.is_given() {
        None
    } else {
        let key_is_given = positional.len() > 1 || arguments.flags.are_complete();
        match positional.pop() {
            Some(value) if key_is_given => Some(Secret::from(value.to_owned())),
            _ => return Err(invocation.usage(KEY_AND_VALUE)),
        }
    };
    let key = arguments.flags.key(&positional, invocation)?;
    let value = value.map_or_else(|| arguments.source.read(key.as_str()), Ok)?;
    // The program that was to print the value may have failed.
    if value.expose().is_empty() && !arguments.allow_empty {
        return Err(Failure::invalid(format!(
            "the value of {key} is empty, and nothing was changed; --allow-empty accepts it"
        )));
    }
    // Other options take it for standard input.
    if value.expose() == "-" && !arguments.source.is_given() {
        return Err(Failure::invalid(format!(
            "the value of {key} is \"-\", and nothing was changed; --stdin reads standard input"
        )));
    }
    invocation.messages.hide([value.clone()]);
    block_on(async { Ok(open(invocation)?.set(&key, &value).await?) })
}

impl ValueSource {
    fn is_given(&self) -> bool {
        self.from_file.is_some() || self.stdin || self.prompt
    }

    fn read(&self, key: &str) -> Result<Secret, Failure> {
        if self.prompt {
            return Ok(terminal::ask(&format!("Value of {key}"), true)?);
        }
        let (origin, mut bytes) = (self.origin(), Vec::new());
        let read = match &self.from_file {
            Some(file) => {
                std::fs::File::open(file).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes))
            }
            None => std::io::stdin().lock().take(LARGEST + 1).read_to_end(&mut bytes),
        };
        let length = read.map_err(|error| Failure::internal(format!("cannot read {origin}: {error}")))?;
        if length as u64 > LARGEST {
            return Err(Failure::invalid(format!("the value from {origin} is larger than 4 MiB")));
        }
        let mut text = String::from_utf8(bytes).map_err(|_| {
            Failure::invalid(format!("the value from {origin} is not UTF-8, which secret stores require"))
        })?;
        for end in ['\n', '\r'] {
            if text.ends_with(end) {
                text.pop();
            }
        }
        Ok(Secret::from(text))
    }

    fn origin(&self) -> String {
        self.from_file.as_ref().map_or_else(|| "standard input".to_owned(), |file| file.display().to_string())
    }
}
