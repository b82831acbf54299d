//! The arguments for the source and the HTTP method of a command.

use clap::Args;
use declarest_core::metadata::OperationName;
use declarest_core::metadata::document::{Document, OperationSection, OperationsSection};
use http::Method;

use crate::error::Failure;
use crate::interrupt::{block_on, block_on_local};

/// The source to read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    ManagedServer,
    Repository,
}

impl Source {
    /// Runs work that reads from the source. The repository needs no threads, and no response to Ctrl-C.
    pub fn block_on<T>(self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        match self {
            Self::ManagedServer => block_on(work),
            Self::Repository => block_on_local(work),
        }
    }
}

#[derive(Clone, Debug, Default, Args)]
pub struct SourceArguments {
    /// The source to read from: managed-server or repository
    #[arg(long, value_name = "SOURCE", default_value = "managed-server")]
    source: String,

    #[command(flatten)]
    pub method: MethodArgument,
}

#[derive(Clone, Debug, Default, Args)]
pub struct MethodArgument {
    /// HTTP method to use instead of that of the metadata
    #[arg(long, value_name = "METHOD")]
    http_method: Option<String>,
}

impl SourceArguments {
    /// Returns the source. An HTTP method is an error with the repository.
    pub fn source(&self) -> Result<Source, Failure> {
        let source = match self.source.trim() {
            "managed-server" | "managed-service" => Source::ManagedServer,
            "repository" => Source::Repository,
            other => {
                return Err(Failure::invalid(format!(
                    "--source \"{other}\" is not supported; use managed-server or repository"
                )));
            }
        };
        if source == Source::Repository && self.method.method()?.is_some() {
            return Err(Failure::invalid("--http-method needs --source managed-server"));
        }
        Ok(source)
    }
}

impl MethodArgument {
    /// Returns the metadata overrides of the flag for `operations`.
    pub fn overrides(&self, operations: &[OperationName]) -> Result<Document, Failure> {
        let Some(method) = self.method()? else { return Ok(Document::default()) };
        let section = OperationSection { method: Some(method.to_string()), ..OperationSection::default() };
        let operations = operations.iter().map(|operation| (*operation, section.clone())).collect();
        let operations = Some(OperationsSection { defaults: None, operations });
        Ok(Document { operations, ..Document::default() })
    }

    fn method(&self) -> Result<Option<Method>, Failure> {
        let Some(text) = self.http_method.as_deref() else { return Ok(None) };
        let method = Method::from_bytes(text.trim().to_ascii_uppercase().as_bytes());
        method.map(Some).map_err(|_| {
            Failure::invalid(format!(
                "--http-method \"{text}\" is not an HTTP method; write a method such as POST"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn arguments(source: &str, method: Option<&str>) -> SourceArguments {
        let method = MethodArgument { http_method: method.map(str::to_owned) };
        SourceArguments { source: source.to_owned(), method }
    }

    #[rstest]
    #[case("managed-server", None, Source::ManagedServer)]
    #[case("managed-service", Some("get"), Source::ManagedServer)]
    #[case("repository", None, Source::Repository)]
    fn sources(#[case] source: &str, #[case] method: Option<&str>, #[case] expected: Source) {
        assert_eq!(arguments(source, method).source().unwrap(), expected);
    }

    #[rstest]
    #[case("both", None, "--source \"both\" is not supported; use managed-server or repository")]
    #[case("repository", Some("GET"), "--http-method needs --source managed-server")]
    #[case(
        "repository",
        Some("A B"),
        "--http-method \"A B\" is not an HTTP method; write a method such as POST"
    )]
    fn invalid_sources_and_methods_are_rejected(
        #[case] source: &str,
        #[case] method: Option<&str>,
        #[case] message: &str,
    ) {
        let failure = arguments(source, method).source().unwrap_err();
        assert_eq!((failure.message(), failure.category().exit_code()), (message, 2));
    }

    #[test]
    fn a_method_is_upper_cased() {
        let document =
            arguments("managed-server", Some(" post ")).method.overrides(&[OperationName::Get]).unwrap();
        let operations = document.operations.unwrap().operations;
        assert_eq!(operations[&OperationName::Get].method.as_deref(), Some("POST"));
        assert_eq!(
            arguments("repository", None).method.overrides(&[OperationName::Get]).unwrap(),
            Document::default()
        );
    }
}
