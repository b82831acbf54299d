//! Tests of Git over HTTP without a server of Git.

use std::time::{Duration, Instant};

use rstest::rstest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::super::super::RemoteUrl;
use super::*;
use crate::error::{Categorized, Category};

fn token() -> RemoteAuth {
    RemoteAuth::Token { user: None, token: "hunter2".to_owned().into() }
}

fn ssh_key() -> RemoteAuth {
    RemoteAuth::Ssh {
        user: None,
        private_key: "hunter2".to_owned().into(),
        passphrase: None,
        known_hosts: None,
        insecure_ignore_host_key: false,
    }
}

fn transport(url: &str, auth: RemoteAuth) -> HttpTransport {
    let remote = Remote::new(RemoteUrl::parse(url).unwrap(), "main", auth);
    let timeout = RepositoryError::Timeout { url: "u".into(), action: "fetching", branch: "main".into() };
    let session = Session::new(&remote, (Instant::now() + Duration::from_mins(1)).into(), timeout).unwrap();
    HttpTransport::new(&session).unwrap()
}

/// Answers each connection with the same text.
async fn answer(listener: TcpListener, text: String) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(text.as_bytes()).await.unwrap();
    }
}

/// Returns the error of a discovery that gets this answer.
fn refused(auth: RemoteAuth, head: &str) -> RepositoryError {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let url = format!("http://{}/a?x=hunter2", listener.local_addr().unwrap());
    runtime.spawn(answer(listener, format!("{head}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")));
    let transport = transport(&url, auth);
    assert!(transport.action("", Service::UploadPackLs).is_err());
    let error = transport.exchange.session.failure().unwrap();
    assert!(!error.to_string().contains("hunter2"), "{error}");
    error
}

#[rstest]
#[case(token(), "401 Unauthorized", Category::Auth, "refused the configured credentials")]
#[case(token(), "403 Forbidden", Category::Auth, "refused the configured credentials")]
#[case(RemoteAuth::None, "401 Unauthorized", Category::Auth, "none are configured")]
#[case(RemoteAuth::None, "403 Forbidden", Category::Auth, "refused the configured credentials")]
#[case(ssh_key(), "401 Unauthorized", Category::Auth, "an SSH key is configured, which it does not accept")]
#[case(RemoteAuth::None, "404 Not Found", Category::NotFound, "hidden from these credentials")]
#[case(RemoteAuth::None, "502 Bad Gateway", Category::Transport, "answered with status 502 Bad Gateway")]
#[case(RemoteAuth::None, "407 Proxy Authentication Required", Category::Transport, "status 407 Proxy")]
#[case(RemoteAuth::None, "302 Found", Category::Transport, "redirects to an invalid URL")]
#[case(RemoteAuth::None, "302 Found\r\nLocation: ftp://h/a", Category::Transport, "to an invalid URL")]
#[case(RemoteAuth::None, "302 Found\r\nLocation: /b", Category::Transport, "it redirects too often")]
#[case(RemoteAuth::None, "200 OK\r\nContent-Type: text/html", Category::Transport, "type \"text/html\"")]
#[case(RemoteAuth::None, "200 OK", Category::Transport, "type \"\"")]
#[case(token(), "302 Found\r\nLocation: http://evil.test/", Category::Auth, "redirects to evil.test:80")]
fn answers_that_are_not_of_a_git_server(
    #[case] auth: RemoteAuth,
    #[case] answer: &str,
    #[case] category: Category,
    #[case] text: &str,
) {
    let error = refused(auth, &format!("HTTP/1.1 {answer}"));
    assert_eq!((error.category(), error.to_string().contains(text)), (category, true), "{error}");
}

#[rstest]
#[case::same("https://git.example.org/a", "https://GIT.example.org/b?c", true)]
#[case::same_port("http://h:8080/a", "http://h:8080/a", true)]
#[case::upgrade("http://h/a", "https://h/a", true)]
#[case::ipv6("http://[::1]:8080/a", "http://[::1]:8080/b", true)]
#[case::downgrade("https://h/a", "http://h/a", false)]
#[case::upgrade_at_other_ports("http://h:81/a", "https://h/a", false)]
#[case::elsewhere("https://h/a", "https://evil.example.org/a", false)]
#[case::other_port("https://h/a", "https://h:8443/a", false)]
#[case::suffix("https://h/a", "https://h.evil.example.org/a", false)]
fn credentials_stay_with_their_server(#[case] from: &str, #[case] to: &str, #[case] expected: bool) {
    assert_eq!(is_same_server(&from.parse().unwrap(), &to.parse().unwrap()), expected);
}

#[rstest]
#[case("https://h/a.git", "https://h/a.git/info/refs?service=git-upload-pack")]
#[case("https://h/a/", "https://h/a/info/refs?service=git-upload-pack")]
#[case("https://h/a?key=b%26c", "https://h/a/info/refs?key=b%26c&service=git-upload-pack")]
fn the_repository_is_above_its_refs(#[case] repository: &str, #[case] refs: &str) {
    let mut url = below(&repository.parse().unwrap(), "info/refs");
    url.query_pairs_mut().append_pair("service", "git-upload-pack");
    assert_eq!(url.as_str(), refs);
    assert_eq!(above(url, "/info/refs").as_str(), repository.trim_end_matches('/'));
}

#[test]
fn an_incomplete_answer_is_reported() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let url = format!("http://{}/a", listener.local_addr().unwrap());
    let kind = "Content-Type: application/x-git-upload-pack-advertisement";
    let text = format!("HTTP/1.1 200 OK\r\n{kind}\r\nContent-Length: 9\r\n\r\nfirst");
    runtime.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        while stream.read_u8().await.unwrap() != b'\n' {}
        stream.write_all(text.as_bytes()).await.unwrap();
    });
    let transport = transport(&url, RemoteAuth::None);
    let mut stream = transport.action("", Service::UploadPackLs).unwrap();
    assert!(stream.read_to_end(&mut Vec::new()).is_err());
    let text = transport.exchange.session.failure().unwrap().to_string();
    assert!(text.starts_with(&format!("repository {url}: its answer is incomplete: ")), "{text}");
}

/// libgit2 holds the list of refs in memory, and the quota of a fetch counts only the pack.
#[test]
fn an_endless_list_of_refs_is_refused() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let url = format!("http://{}/a", listener.local_addr().unwrap());
    let kind = "Content-Type: application/x-git-upload-pack-advertisement";
    let head = format!("HTTP/1.1 200 OK\r\n{kind}\r\n\r\n001e# service=git-upload-pack\n0000");
    runtime.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        while stream.read_u8().await.unwrap() != b'\n' {}
        stream.write_all(head.as_bytes()).await.unwrap();
        let refs = format!("003d{} refs/heads/main\n", "1".repeat(40)).repeat(1000);
        while stream.write_all(refs.as_bytes()).await.is_ok() {}
    });
    let directory = tempfile::tempdir().unwrap();
    let mirror = super::super::super::Mirror::open(directory.path(), "binding").unwrap();
    let remote = Remote::new(RemoteUrl::parse(&url).unwrap(), "main", RemoteAuth::None);
    let error = mirror.fetch(&remote, Instant::now() + Duration::from_mins(1)).unwrap_err();
    let expected = format!("repository {url}: its list of refs exceeds the limit of 32 MiB; ");
    assert!(error.to_string().starts_with(&expected), "{error}");
    assert_eq!(error.category(), Category::Transport);
}

#[test]
fn the_address_of_an_ended_session_has_no_transport() {
    let transport = transport("http://h/a", RemoteAuth::None);
    let address = transport.exchange.session.address();
    assert!(super::super::session_at(&address).is_some());
    drop(transport);
    assert!(super::super::session_at(&address).is_none());
}
