//! Tests of deadlines and errors of a connection.

use std::time::{Duration, Instant};

use rstest::rstest;

use super::super::RemoteUrl;
use super::*;
use crate::error::{Categorized, Category};
use crate::transport::TlsConfig;

fn remote(url: &str, auth: RemoteAuth) -> Remote {
    Remote::new(RemoteUrl::parse(url).unwrap(), "main", auth)
}

fn token() -> RemoteAuth {
    RemoteAuth::Token { user: None, token: "hunter2".to_owned().into() }
}

fn ssh_key() -> RemoteAuth {
    RemoteAuth::Ssh {
        user: None,
        private_key: "key".to_owned().into(),
        passphrase: None,
        known_hosts: None,
        insecure_ignore_host_key: false,
    }
}

fn attempt(remote: &Remote) -> Connection<'_> {
    Connection::new(remote, Purpose::Fetch, (Instant::now() + Duration::from_mins(1)).into()).unwrap()
}

#[test]
fn a_passed_deadline_stops_the_transfer() {
    let remote = remote("https://h/a", RemoteAuth::None);
    let mut attempt = attempt(&remote);
    assert!(attempt.in_time());
    attempt.deadline = Instant::now().into();
    assert!(!attempt.in_time());
    assert_eq!(attempt.failure.take(), Some(timeout(&remote, Purpose::Fetch)));
}

#[rstest]
#[case(ErrorCode::Eof, ErrorClass::Net, "remote error: Repository not found.", Category::NotFound)]
#[case(ErrorCode::GenericError, ErrorClass::Net, "failed to resolve address", Category::Transport)]
#[case(ErrorCode::GenericError, ErrorClass::Os, "failed to connect", Category::Transport)]
#[case(
    ErrorCode::GenericError,
    ErrorClass::Indexer,
    "unexpected data at the end of the pack",
    Category::Transport
)]
#[case(
    ErrorCode::GenericError,
    ErrorClass::Os,
    "failed to write: No space left on device",
    Category::Internal
)]
#[case(ErrorCode::GenericError, ErrorClass::Net, "invalid packet line", Category::Validation)]
#[case(ErrorCode::NotFastForward, ErrorClass::Reference, "cannot push", Category::Conflict)]
#[case(ErrorCode::GenericError, ErrorClass::Odb, "object is corrupted", Category::Internal)]
fn errors_of_the_library_have_categories(
    #[case] code: ErrorCode,
    #[case] class: ErrorClass,
    #[case] message: &str,
    #[case] expected: Category,
) {
    let remote = remote("https://me@h/a?x=hunter2", RemoteAuth::None);
    let error = attempt(&remote).explain(&git2::Error::new(code, class, message));
    assert_eq!(error.category(), expected, "{error}");
    assert!(error.to_string().contains("https://h/a") && !error.to_string().contains("hunter2"), "{error}");
}

#[rstest]
#[case("ssh://h/a", token(), "main", false, Category::Auth)]
#[case("ssh://h/a", RemoteAuth::None, "main", false, Category::Auth)]
#[case("ssh://h/a", ssh_key(), "main", true, Category::Validation)]
#[case("https://h/a", RemoteAuth::None, "a..b", false, Category::Validation)]
#[case("https://h/a", RemoteAuth::None, "", false, Category::Validation)]
fn invalid_configurations_fail_without_a_connection(
    #[case] url: &str,
    #[case] auth: RemoteAuth,
    #[case] branch: &str,
    #[case] insecure: bool,
    #[case] expected: Category,
) {
    let tls = if insecure { TlsConfig::insecure() } else { TlsConfig::default() };
    let remote = Remote { branch: branch.into(), tls, ..remote(url, auth) };
    let error = Connection::new(&remote, Purpose::Fetch, Instant::now().into()).err().unwrap();
    assert_eq!(error.category(), expected, "{error}");
}
