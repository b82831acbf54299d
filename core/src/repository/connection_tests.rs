//! Tests of credentials, deadlines and errors of a connection.

use std::time::Duration;

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
    Connection::new(remote, Purpose::Fetch, Instant::now() + Duration::from_mins(1)).unwrap()
}

fn basic() -> RemoteAuth {
    RemoteAuth::Basic { user: "ops".to_owned(), password: "hunter2".to_owned().into() }
}

const PASSWORD: CredentialType = CredentialType::USER_PASS_PLAINTEXT;

#[test]
fn a_rejected_token_is_not_sent_again() {
    let remote = remote("https://h/a", token());
    let attempt = attempt(&remote);
    assert!(attempt.credentials("https://h/a", PASSWORD).is_ok());
    let again = attempt.credentials("https://h/a", PASSWORD).err();
    assert_eq!(again, Some(RepositoryError::CredentialsRejected { url: "https://h/a".into() }));
}

#[rstest]
#[case::same("https://git.example.org/a", "https://git.example.org/a/info/refs", true)]
#[case::other_case("https://git.example.org/a", "https://GIT.example.org/a", true)]
#[case::same_port("http://h:8080/a", "http://h:8080/a", true)]
#[case::upgrade("http://h/a", "https://h/a", true)]
#[case::ipv6("http://[::1]:8080/a", "http://[::1]:8080/b", true)]
#[case::elsewhere("https://h/a", "https://evil.example.org/a", false)]
#[case::other_port("https://h/a", "https://h:8443/a", false)]
#[case::suffix("https://h/a", "https://h.evil.example.org/a", false)]
#[case::unreadable("https://h/a", "", false)]
fn credentials_stay_with_their_host(#[case] url: &str, #[case] asking: &str, #[case] expected: bool) {
    let remote = remote(url, token());
    let answer = attempt(&remote).credentials(asking, PASSWORD);
    assert_eq!(answer.is_ok(), expected);
    if let Err(error) = answer {
        assert!(matches!(error, RepositoryError::CredentialsElsewhere { .. }), "{error}");
    }
}

#[rstest]
#[case(RemoteAuth::None, PASSWORD, "none are configured")]
#[case(ssh_key(), PASSWORD, "an SSH key is configured, which it does not accept")]
#[case(basic(), CredentialType::DEFAULT, "a password is configured, which it does not accept")]
#[case(token(), CredentialType::DEFAULT, "a token is configured, which it does not accept")]
fn unsuitable_credentials_are_named_in_the_error(
    #[case] auth: RemoteAuth,
    #[case] asked: CredentialType,
    #[case] reason: &str,
) {
    let remote = remote("https://h/a", auth);
    let error = attempt(&remote).credentials("https://h/a", asked).err().unwrap();
    assert_eq!(error.category(), Category::Auth);
    assert!(error.to_string().ends_with(reason), "{error}");
}

#[test]
fn ssh_sends_the_user_before_the_key() {
    let remote = remote("ssh://h/a", ssh_key());
    let attempt = attempt(&remote);
    assert!(attempt.credentials("ssh://h/a", CredentialType::USERNAME).unwrap().has_username());
    assert!(attempt.credentials("ssh://h/a", CredentialType::SSH_KEY | CredentialType::SSH_CUSTOM).is_ok());
    assert!(attempt.credentials("ssh://h/a", CredentialType::SSH_KEY).is_err());
}

#[test]
fn a_passed_deadline_stops_the_transfer() {
    let remote = remote("https://h/a", RemoteAuth::None);
    let mut attempt = attempt(&remote);
    assert!(attempt.in_time());
    attempt.deadline = Instant::now();
    assert!(!attempt.in_time());
    assert_eq!(attempt.failure.take(), Some(timeout(&remote, Purpose::Fetch)));
}

#[rstest]
#[case(ErrorCode::Auth, ErrorClass::Http, "unexpected authentication failure", Category::Auth)]
#[case(ErrorCode::GenericError, ErrorClass::Http, "unexpected http status code: 403", Category::Auth)]
#[case(ErrorCode::GenericError, ErrorClass::Http, "unexpected http status code: 404", Category::NotFound)]
#[case(ErrorCode::GenericError, ErrorClass::Http, "unexpected http status code: 502", Category::Transport)]
#[case(ErrorCode::Eof, ErrorClass::Ssh, "ERROR: Repository not found.", Category::NotFound)]
#[case(
    ErrorCode::GenericError,
    ErrorClass::Ssh,
    "Failed to authenticate SSH session: bad key",
    Category::Auth
)]
#[case(ErrorCode::GenericError, ErrorClass::Ssh, "failed to start SSH session", Category::Transport)]
#[case(ErrorCode::GenericError, ErrorClass::Net, "failed to resolve address", Category::Transport)]
#[case(ErrorCode::GenericError, ErrorClass::Os, "failed to connect", Category::Transport)]
#[case(ErrorCode::Certificate, ErrorClass::Ssl, "the SSL certificate is invalid", Category::Transport)]
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
    let error = Connection::new(&remote, Purpose::Fetch, Instant::now()).err().unwrap();
    assert_eq!(error.category(), expected, "{error}");
}
