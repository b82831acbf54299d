//! Reads files and standard input.

use std::io::{IsTerminal as _, Read};
use std::path::{Path, PathBuf};

use declarest_core::payload::{Class, Descriptor, PayloadType};

use super::{Content, InputError};
use crate::terminal;

const MIB: usize = 1 << 20;

/// The maximum size of input in MiB.
const LIMIT: usize = 4;

/// Bytes and their source.
pub struct Raw {
    pub origin: String,
    pub bytes: Vec<u8>,
    extension: Option<String>,
}

impl Raw {
    /// Returns the type of the file extension, if it is known.
    pub fn by_name(&self) -> Option<Descriptor> {
        let extension = self.extension.as_deref()?;
        let descriptor = Descriptor::from_extension(extension);
        let known = descriptor.payload_type != PayloadType::OctetStream || extension == "bin";
        known.then_some(descriptor)
    }

    /// Guesses the type: by the extension, otherwise JSON by the first character, otherwise bytes that keep their
    /// extension.
    pub fn guess(&self) -> Descriptor {
        if let Some(by_name) = self.by_name() {
            return by_name;
        }
        // The decoder of JSON reports a byte order mark.
        let text = self.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.bytes).trim_ascii_start();
        if text.starts_with(b"{") || text.starts_with(b"[") {
            return Descriptor::of(PayloadType::Json);
        }
        match &self.extension {
            Some(extension) => Descriptor::from_extension(extension),
            None => Descriptor::of(PayloadType::OctetStream),
        }
    }

    /// Returns the content with its type. Blank input is an error, unless it is binary.
    pub fn into_content(self, descriptor: Descriptor) -> Result<Content, InputError> {
        let Self { origin, bytes, .. } = self;
        if bytes.trim_ascii().is_empty() && descriptor.payload_type.class() != Class::Binary {
            return Err(InputError::Blank(origin));
        }
        Ok(Content { origin, bytes, descriptor })
    }
}

/// Returns whether an argument is the name of an existing file.
pub fn is_file(argument: &str) -> bool {
    expanded(argument).is_file()
}

/// Reads a file.
pub fn file(argument: &str) -> Result<Raw, InputError> {
    let path = expanded(argument);
    let failed =
        |error: std::io::Error| InputError::Read { origin: argument.to_owned(), reason: error.to_string() };
    let bytes = read(std::fs::File::open(&path).map_err(failed)?, argument)?;
    let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_owned);
    Ok(Raw { origin: argument.to_owned(), bytes, extension })
}

/// Reads standard input. Returns `None` for a terminal and for blank input.
pub fn stdin() -> Result<Option<Raw>, InputError> {
    const ORIGIN: &str = "standard input";
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Ok(None);
    }
    let bytes = read(stdin.lock(), ORIGIN)?;
    let blank = bytes.trim_ascii().is_empty();
    Ok((!blank).then(|| Raw { origin: ORIGIN.to_owned(), bytes, extension: None }))
}

/// Reads standard input that no argument names. Returns `None` with `--no-input`.
pub fn unnamed_stdin() -> Result<Option<Raw>, InputError> {
    if terminal::takes_input() { stdin() } else { Ok(None) }
}

fn read(source: impl Read, origin: &str) -> Result<Vec<u8>, InputError> {
    let most = LIMIT * MIB;
    let mut bytes = Vec::new();
    let read = source.take(most as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| InputError::Read { origin: origin.to_owned(), reason: error.to_string() })?;
    if bytes.len() > most {
        return Err(InputError::TooLarge { origin: origin.to_owned(), limit: LIMIT });
    }
    Ok(bytes)
}

/// Expands `~` and `~/` to the home directory, in case the shell has not done so.
pub fn expanded(argument: &str) -> PathBuf {
    match (argument.strip_prefix("~/"), std::env::home_dir()) {
        (Some(below), Some(home)) => home.join(below),
        (None, Some(home)) if argument == "~" => home,
        _ => Path::new(argument).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn raw(bytes: &str, extension: Option<&str>) -> Raw {
        Raw { origin: "x".to_owned(), bytes: bytes.into(), extension: extension.map(str::to_owned) }
    }

    #[rstest]
    #[case("a: 1", Some("yml"), PayloadType::Yaml, ".yml")]
    #[case("[1]", Some("txt"), PayloadType::Text, ".txt")]
    #[case(" {}", Some("shop"), PayloadType::Json, ".json")]
    #[case("\n[1]", None, PayloadType::Json, ".json")]
    #[case("plain", Some("shop"), PayloadType::OctetStream, ".shop")]
    #[case("plain", None, PayloadType::OctetStream, ".bin")]
    #[case("{}", Some("bin"), PayloadType::OctetStream, ".bin")]
    fn guesses(
        #[case] bytes: &str,
        #[case] extension: Option<&str>,
        #[case] payload_type: PayloadType,
        #[case] kept: &str,
    ) {
        let guess = raw(bytes, extension).guess();
        assert_eq!((guess.payload_type, guess.extension.as_ref()), (payload_type, kept));
    }

    #[test]
    fn the_limit_is_exact() {
        let most = LIMIT * MIB;
        assert_eq!(read(std::io::repeat(b'a').take(most as u64), "x").unwrap().len(), most);
        let error = read(std::io::repeat(b'a'), "x").unwrap_err();
        assert_eq!(error.to_string(), "the payload from x is larger than 4 MiB");
    }

    #[rstest]
    #[case(PayloadType::Json, true)]
    #[case(PayloadType::Text, true)]
    #[case(PayloadType::OctetStream, false)]
    fn only_binary_input_may_be_empty(#[case] payload_type: PayloadType, #[case] refused: bool) {
        assert_eq!(raw(" \n", None).into_content(Descriptor::of(payload_type)).is_err(), refused);
    }
}
