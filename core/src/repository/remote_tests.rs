//! Tests of remotes and their URLs.

use rstest::rstest;

use super::*;
use crate::error::{Categorized, Category};

#[rstest]
#[case("https://git.example.org/a/b.git", "https://git.example.org/a/b.git", "git.example.org", 443, None)]
#[case("http://h:8080/a?token=x#y", "http://h:8080/a", "h", 8080, None)]
#[case("https://me%40corp@h/a", "https://h/a", "h", 443, Some("me@corp"))]
#[case("ssh://git@h/a.git", "ssh://h/a.git", "h", 22, Some("git"))]
#[case("ssh://h:2222/~/a.git", "ssh://h:2222/~/a.git", "h", 2222, None)]
#[case("ssh://git@[::1]:2222/a", "ssh://[::1]:2222/a", "::1", 2222, Some("git"))]
#[case("git@h.example.org:team/a.git", "h.example.org:team/a.git", "h.example.org", 22, Some("git"))]
#[case("git@[::1]:a.git", "::1:a.git", "::1", 22, Some("git"))]
fn parses(
    #[case] text: &str,
    #[case] shown: &str,
    #[case] host: &str,
    #[case] port: u16,
    #[case] user: Option<&str>,
) {
    let url = RemoteUrl::parse(text).unwrap();
    assert_eq!((url.to_string().as_str(), url.host.as_str(), url.port), (shown, host, port));
    assert_eq!(url.user(), user);
}

#[rstest]
#[case("https://user:hunter2@h/a", "password")]
#[case("ssh://git:hunter2@h/a", "password")]
#[case("git:hunter2@h:a", "password")]
#[case("https://", "not a URL")]
#[case("ssh:///a", "must have a host")]
#[case("ftp://h/a", "scheme")]
#[case("file:///srv/hunter2", "not allowed")]
#[case("/srv/a", "user@host:path")]
#[case("h:a", "user@host:path")]
#[case("git@h", "user@host:path")]
#[case("", "user@host:path")]
fn refuses(#[case] text: &str, #[case] reason: &str) {
    let error = RemoteUrl::parse(text).unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    assert!(error.to_string().contains(reason), "{error}");
    assert!(!error.to_string().contains("hunter2") || text.starts_with("file:"), "{error}");
}

#[test]
fn local_repositories_must_be_allowed() {
    assert_eq!(RemoteUrl::parse_local_allowed("file:///srv/a").unwrap().to_string(), "file:///srv/a");
    assert_eq!(RemoteUrl::parse_local_allowed(" /srv/a b ").unwrap().to_string(), "file:///srv/a%20b");
    assert!(RemoteUrl::parse_local_allowed("srv/a").is_err());
    assert!(RemoteUrl::parse_local_allowed("file://host/srv/a").is_err());
    assert!(RemoteUrl::parse_local_allowed("https://h/a").is_ok());
}

#[rstest]
#[case("ssh://h/srv/a%20b.git", "/srv/a b.git")]
#[case("ssh://h/~me/a.git", "~me/a.git")]
#[case("git@h:a.git", "a.git")]
#[case("git@h:/srv/a.git", "/srv/a.git")]
#[case("git@[::1]:~/a", "~/a")]
fn paths_on_an_ssh_server(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(RemoteUrl::parse(text).unwrap().ssh_path(), expected);
}

#[rstest]
#[case("https://me@h/a", None, "me")]
#[case("https://h/a", None, "token")]
#[case("https://me@h/a", Some("other"), "other")]
fn users_of_tokens(#[case] url: &str, #[case] user: Option<&str>, #[case] expected: &str) {
    let auth = RemoteAuth::Token { user: user.map(str::to_owned), token: "t".to_owned().into() };
    let remote = Remote::new(RemoteUrl::parse(url).unwrap(), "main", auth);
    assert_eq!(remote.user(), expected);
    assert!(!format!("{remote:?}").contains("\"t\""));
}

#[rstest]
#[case("https://me@h/a", "https://h/a")]
#[case("ssh://h/a", "ssh://h/a")]
#[case("ssh://git@h:22/a", "ssh://git@h:22/a")]
#[case("git@h:a", "git@h:a")]
#[case("git@[::1]:a", "git@[::1]:a")]
#[case("file:///srv/a", "file:///srv/a")]
fn the_address_that_a_checkout_records(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(RemoteUrl::parse_local_allowed(text).unwrap().recorded_text(), expected);
}
