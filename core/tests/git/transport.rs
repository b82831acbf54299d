//! Credentials, certificates and proxies on the way to a remote.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use declarest_core::proxy::{Proxy, ProxyFields};
use declarest_core::repository::{Remote, RemoteAuth, RemoteUrl, RepositoryError, SyncState, Worktree};
use declarest_core::transport::{Pem, TlsConfig, TlsFiles};
use rstest::rstest;
use url::Url;

use crate::checkout::{Checkout, deadline, failure};
use crate::git_http::GitHttp;
use crate::git_remote::git;
use crate::network::{Authority, Identity, RecordingProxy, Server, redirecting};
use crate::sshd::{PASSPHRASE, Sshd};

fn remote(url: &str, auth: RemoteAuth) -> Remote {
    Remote::new(RemoteUrl::parse(url).unwrap(), "main", auth)
}

fn basic(password: &str) -> RemoteAuth {
    RemoteAuth::Basic { user: "ops".to_owned(), password: password.to_owned().into() }
}

fn address(server: &GitHttp) -> SocketAddr {
    let url = Url::parse(&server.url("")).unwrap();
    url.socket_addrs(|| None).unwrap()[0]
}

/// Fetches and pushes over the remote.
fn round_trip(checkout: &Checkout, remote: &Remote) {
    checkout.remote_commits("theirs");
    let worktree = checkout.worktree_with(remote.clone());
    worktree.refresh(deadline()).unwrap();
    assert_eq!(checkout.read("theirs").as_deref(), Some("theirs"));
    let mine = checkout.commits("mine");
    worktree.push(false, deadline()).unwrap();
    assert_eq!(git(&checkout.remote.bare(), &["rev-parse", "main"]), mine.as_str());
    assert_eq!(worktree.status(deadline()).unwrap().state, SyncState::UpToDate);
    // Whatever stands between, only the remote is remembered.
    let recorded = RemoteUrl::parse(&checkout.git(&["config", "remote.origin.url"])).unwrap();
    assert_eq!(recorded.to_string(), remote.url.to_string());
    let reflog = checkout.read(".git/logs/refs/remotes/origin/main").unwrap();
    assert!(reflog.contains(&format!("fetch {}", remote.url)), "{reflog}");
    assert_eq!(checkout.read(".git/FETCH_HEAD").unwrap_or_default(), "");
}

fn trusting(authority: &Authority) -> TlsConfig {
    TlsConfig::trusting(Pem { origin: "bundle", text: authority.pem().as_bytes() }).unwrap()
}

fn presenting(tls: TlsConfig, identity: &Identity) -> TlsConfig {
    let (certificate, key) = (identity.pem(), identity.key());
    let certificate = Pem { origin: "certificate", text: certificate.as_bytes() };
    tls.presenting(certificate, Pem { origin: "key", text: key.as_bytes() }).unwrap()
}

#[rstest]
#[case::basic(basic("hunter2"), "ops")]
#[case::access_key(RemoteAuth::Token { user: None, token: "hunter2".to_owned().into() }, "token")]
fn http_credentials(#[case] auth: RemoteAuth, #[case] user: &str) {
    let checkout = Checkout::of_one_commit();
    let server = GitHttp::start(checkout.remote.root(), Some("hunter2"));
    round_trip(&checkout, &remote(&server.url("desired.git"), auth));
    let users = server.users();
    assert!(!users.is_empty() && users.iter().all(|name| name == user), "{users:?}");
    let recorded = std::fs::read_to_string(checkout.path().join(".git/config")).unwrap();
    assert!(!recorded.contains("hunter2"), "{recorded}");
}

#[test]
fn a_fetch_over_http_takes_two_requests_after_any_number_of_commits() {
    let checkout = Checkout::of_one_commit();
    for number in 0..50 {
        checkout.remote.write("first", format!("{number}")).commit("change");
    }
    checkout.remote.push();
    let server = GitHttp::start(checkout.remote.root(), None);
    let worktree = checkout.worktree_with(remote(&server.url("desired.git"), RemoteAuth::None));
    worktree.refresh(deadline()).unwrap();
    let objects = |checkout: &Checkout| -> usize {
        let counts = checkout.git(&["count-objects", "--verbose"]);
        counts.lines().find_map(|line| line.strip_prefix("in-pack: ")).unwrap().parse().unwrap()
    };
    let (requests, before) = (server.requests(), objects(&checkout));
    checkout.remote_commits("second");
    worktree.refresh(deadline()).unwrap();
    assert_eq!(checkout.read("second").as_deref(), Some("second"));
    assert_eq!(server.requests() - requests, 2, "the list of refs, and the pack");
    assert_eq!(objects(&checkout) - before, 3, "the commit, its tree and its file");
}

#[test]
fn refused_http_credentials() {
    let checkout = Checkout::of_one_commit();
    let server = GitHttp::start(checkout.remote.root(), Some("hunter2"));
    for (auth, reason) in [
        (basic("hunter3"), "refused the configured credentials"),
        (RemoteAuth::None, "asks for credentials, but none are configured"),
    ] {
        let worktree = checkout.worktree_with(remote(&server.url("desired.git"), auth));
        let (category, text) = failure(worktree.status(deadline()));
        assert_eq!((category, text.ends_with(reason)), ("AuthError", true), "{text}");
        assert!(!text.contains("hunter"), "{text}");
    }
}

#[test]
fn ssh_with_a_passphrase_and_known_hosts() {
    let checkout = Checkout::of_one_commit();
    let sshd = Sshd::start();
    let ssh = |key: String, passphrase: Option<&str>, hosts: String, trusting: bool| RemoteAuth::Ssh {
        user: None,
        private_key: key.into(),
        passphrase: passphrase.map(|text| text.to_owned().into()),
        known_hosts: Some(hosts),
        insecure_ignore_host_key: trusting,
    };
    let url = sshd.url(&checkout.remote.bare());
    let status = |auth: RemoteAuth| checkout.worktree_with(remote(&url, auth)).status(deadline());
    assert!(status(ssh(sshd.locked_client_key(), Some(PASSPHRASE), sshd.known_hosts(), false)).is_ok());
    let wrong = ssh(sshd.locked_client_key(), Some("hunter2"), sshd.known_hosts(), false);
    let (category, text) = failure(status(wrong));
    assert_eq!((category, text.contains("hunter2")), ("AuthError", false), "{text}");

    // To open a locked key is slow by design; the rest uses a key without a passphrase.
    round_trip(&checkout, &remote(&url, ssh(sshd.client_key(), None, sshd.known_hosts(), false)));
    let other_host = |trusting| ssh(sshd.client_key(), None, sshd.wrong_known_hosts(), trusting);
    let (category, text) = failure(status(other_host(false)));
    assert_eq!((category, text.contains("intercepted")), ("AuthError", true), "{text}");
    assert!(status(other_host(true)).is_ok());
}

#[test]
fn an_rsa_key_logs_in_to_a_host_that_is_known_by_its_rsa_key() {
    let checkout = Checkout::of_one_commit();
    let sshd = Sshd::start();
    let auth = RemoteAuth::Ssh {
        user: None,
        private_key: sshd.rsa_client_key().into(),
        passphrase: None,
        known_hosts: Some(sshd.rsa_known_hosts()),
        insecure_ignore_host_key: false,
    };
    round_trip(&checkout, &remote(&sshd.url(&checkout.remote.bare()), auth));
}

#[test]
fn failures_of_an_ssh_remote_name_their_cause() {
    let checkout = Checkout::of_one_commit();
    let sshd = Sshd::start();
    let ssh = |key: String| RemoteAuth::Ssh {
        user: None,
        private_key: key.into(),
        passphrase: None,
        known_hosts: Some(sshd.known_hosts()),
        insecure_ignore_host_key: false,
    };
    let url = sshd.url(&checkout.remote.bare());
    let absent = sshd.url(std::path::Path::new("/absent.git"));
    for (url, key, expected) in [
        (&url, sshd.unknown_client_key(), ("AuthError", "refused the configured credentials")),
        (&url, "hunter2".to_owned(), ("AuthError", "the private key or its passphrase cannot be used")),
        (&url, sshd.locked_client_key(), ("AuthError", "it is encrypted, and no passphrase is configured")),
        (&absent, sshd.client_key(), ("NotFoundError", "does not exist or is hidden")),
    ] {
        let (category, text) = failure(checkout.worktree_with(remote(url, ssh(key))).status(deadline()));
        assert_eq!((category, text.contains(expected.1)), (expected.0, true), "{text}");
        assert!(!text.contains("hunter"), "{text}");
    }
}

/// A pack that is larger than what is kept in memory.
#[test]
fn a_large_push_reaches_the_remote() {
    let checkout = Checkout::of_one_commit();
    let server = GitHttp::start(checkout.remote.root(), Some("hunter2"));
    let text: String = (0..3 << 20).map(|_| fastrand::alphanumeric()).collect();
    checkout.write("large", &text);
    checkout.commits("large commit");
    let worktree = checkout.worktree_with(remote(&server.url("desired.git"), basic("hunter2")));
    let pushed = worktree.push(false, deadline()).unwrap();
    assert_eq!(git(&checkout.remote.bare(), &["rev-parse", "main"]), pushed.revision.as_str());
    assert_eq!(worktree.status(deadline()).unwrap().state, SyncState::UpToDate);
}

/// How a checkout fares with a TLS server called `localhost`.
fn tls_failure(checkout: &Checkout, authority: &Authority, name: &str, tls: TlsConfig) -> Option<String> {
    let server = GitHttp::start(checkout.remote.root(), Some("hunter2"));
    let front = authority.serve(name, address(&server));
    let url = format!("https://localhost:{}/desired.git", front.address.port());
    let remote = Remote { tls, ..remote(&url, basic("hunter2")) };
    let status = checkout.worktree_with(remote.clone()).status(deadline());
    if status.is_ok() {
        round_trip(checkout, &remote);
        return None;
    }
    let (category, text) = failure(status);
    assert_eq!((category, server.requests()), ("TransportError", 0), "{text}");
    Some(text)
}

#[test]
fn an_own_authority_is_trusted_and_only_for_its_servers() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let checkout = Checkout::of_one_commit();
    let unknown = tls_failure(&checkout, &ours, "localhost", TlsConfig::default()).unwrap();
    assert!(unknown.contains("certificate"), "{unknown}");
    let foreign = tls_failure(&checkout, &ours, "localhost", trusting(&theirs)).unwrap();
    assert!(foreign.contains("its certificate is not trusted: "), "{foreign}");
    let misnamed = tls_failure(&checkout, &ours, "git.test", trusting(&ours)).unwrap();
    assert!(misnamed.contains("git.test"), "{misnamed}");
    assert_eq!(tls_failure(&checkout, &ours, "localhost", trusting(&ours)), None);
}

#[test]
fn verification_can_be_turned_off() {
    let checkout = Checkout::of_one_commit();
    assert_eq!(tls_failure(&checkout, &Authority::new(), "git.test", TlsConfig::insecure()), None);
}

/// A remote behind a TLS server called `localhost`, whose certificate an intermediate authority signed. It
/// asks for the certificate of a client if there are `clients`.
struct Chained {
    checkout: Checkout,
    server: GitHttp,
    front: Server,
    root: Authority,
}

impl Chained {
    fn new(clients: Option<&Authority>) -> Chained {
        let checkout = Checkout::of_one_commit();
        let server = GitHttp::start(checkout.remote.root(), Some("hunter2"));
        let root = Authority::new();
        let between = root.intermediate();
        let front = between.identity("localhost", &[&between]).serve(clients, address(&server));
        Chained { checkout, server, front, root }
    }

    fn remote(&self, tls: TlsConfig) -> Remote {
        let url = format!("https://localhost:{}/desired.git", self.front.address.port());
        Remote { tls, ..remote(&url, basic("hunter2")) }
    }

    fn refusal(&self, tls: TlsConfig) -> (&'static str, String) {
        let worktree = self.checkout.worktree_with(self.remote(tls));
        let (fetched, pushed) =
            (failure(worktree.status(deadline())), failure(worktree.push(false, deadline())));
        assert_eq!((&fetched, self.server.requests()), (&pushed, 0));
        assert!(!fetched.1.contains("127.0.0.1"), "{}", fetched.1);
        fetched
    }
}

#[test]
fn a_bundle_of_roots_verifies_a_chain() {
    let chained = Chained::new(None);
    round_trip(&chained.checkout, &chained.remote(trusting(&chained.root)));
    assert!(chained.server.users().iter().all(|user| user == "ops"));
}

#[test]
fn a_client_certificate_opens() {
    let clients = Authority::new();
    let chained = Chained::new(Some(&clients));
    let own = clients.identity("client", &[]);
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let file = directory.path().join(name);
        std::fs::write(&file, text).unwrap();
        Some(file)
    };
    let files = TlsFiles {
        ca_cert_file: file("ca.pem", &chained.root.pem()),
        client_cert_file: file("client.pem", own.pem()),
        client_key_file: file("client.key", &own.key()),
        insecure_skip_verify: false,
    };
    round_trip(&chained.checkout, &chained.remote(TlsConfig::from_files(&files).unwrap()));
    let trusting_all = chained.remote(presenting(TlsConfig::insecure(), &own));
    let status = chained.checkout.worktree_with(trusting_all).status(deadline());
    assert_eq!(status.unwrap().state, SyncState::UpToDate);
}

#[test]
fn a_client_certificate_goes_with_the_password() {
    let clients = Authority::new();
    let chained = Chained::new(Some(&clients));
    let tls = presenting(trusting(&chained.root), &clients.identity("client", &[]));
    let wrong = Remote { auth: basic("hunter3"), ..chained.remote(tls) };
    let (category, text) = failure(chained.checkout.worktree_with(wrong).status(deadline()));
    let url = chained.remote(TlsConfig::default()).url;
    let expected = format!("repository {url} refused the configured credentials");
    assert_eq!((category, text), ("AuthError", expected));
}

#[test]
fn refused_client_certificates() {
    let clients = Authority::new();
    let chained = Chained::new(Some(&clients));
    let foreign = Authority::new().identity("client", &[]);
    let (category, text) = chained.refusal(presenting(trusting(&chained.root), &foreign));
    assert_eq!(category, "AuthError", "{text}");
    assert!(text.contains("refused the configured client certificate (TLS alert "), "{text}");
    let (category, text) = chained.refusal(trusting(&chained.root));
    assert_eq!(category, "AuthError", "{text}");
    assert!(text.ends_with("none is configured (TLS alert CertificateRequired)"), "{text}");
    let own = clients.identity("client", &[]);
    let (category, text) = chained.refusal(presenting(trusting(&Authority::new()), &own));
    assert_eq!(
        (category, text.contains("its certificate is not trusted: ")),
        ("TransportError", true),
        "{text}"
    );
}

/// The remote takes the connection and stays silent.
#[test]
fn a_silent_remote_is_given_up_at_the_deadline() {
    let checkout = Checkout::of_one_commit();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}/desired.git", silent.local_addr().unwrap().port());
    let remote = Remote { tls: trusting(&Authority::new()), ..remote(&url, RemoteAuth::None) };
    let soon = Instant::now() + Duration::from_millis(100);
    let error = checkout.worktree_with(remote).status(soon).unwrap_err();
    assert!(matches!(error, RepositoryError::Timeout { .. }), "{error}");
}

/// A remote called `git.test`, which only the proxy can find.
struct Proxied {
    checkout: Checkout,
    server: GitHttp,
}

impl Proxied {
    fn new() -> Proxied {
        let checkout = Checkout::of_one_commit();
        let server = GitHttp::start(checkout.remote.root(), Some("hunter2"));
        Proxied { checkout, server }
    }

    fn worktree(&self, url: &str, proxy: Proxy) -> Worktree {
        self.checkout.worktree_with(Remote { proxy, ..remote(url, basic("hunter2")) })
    }
}

fn via(proxy: &RecordingProxy, userinfo: &str, no_proxy: &str) -> Proxy {
    let url = format!("http://{userinfo}{}", proxy.server.address);
    let fields = ProxyFields { http: Some(&url), https: Some(&url), no_proxy: Some(no_proxy) };
    Proxy::parse("proxy", fields, None).unwrap()
}

/// A repository that moved: only its own host gets the credentials.
#[rstest]
#[case::same_host("http://git.test/desired.git/info/refs?service=git-upload-pack", None)]
#[case::relative("/desired.git/info/refs?service=git-upload-pack", None)]
#[case::elsewhere("http://evil.test/desired.git/info/refs?service=git-upload-pack", Some("evil.test:80"))]
fn redirects_are_followed_to_the_same_host(#[case] location: &str, #[case] refused: Option<&str>) {
    let way = Proxied::new();
    let front = redirecting(location.to_owned(), address(&way.server));
    let proxy = RecordingProxy::start(front.address, None);
    let status = way.worktree("http://git.test/old.git", via(&proxy, "", "")).status(deadline());
    let Some(host) = refused else {
        assert_eq!(status.unwrap().state, SyncState::UpToDate);
        assert!(way.server.users().iter().all(|user| user == "ops") && !way.server.users().is_empty());
        return;
    };
    let (category, text) = failure(status);
    let expected = format!("repository http://git.test/old.git redirects to {host}, ");
    assert_eq!(
        (category, text.starts_with(&expected), way.server.requests()),
        ("AuthError", true, 0),
        "{text}"
    );
}

/// Each line is of a connection; requests that reuse it are not noted.
#[rstest]
#[case::open(None, "")]
#[case::with_login(Some("me@corp:p:w/ü"), "me%40corp:p%3Aw%2F%C3%BC@")]
fn http_remotes_are_reached_through_the_proxy(#[case] login: Option<&str>, #[case] userinfo: &str) {
    let way = Proxied::new();
    let proxy = RecordingProxy::start(address(&way.server), login);
    let url = "http://git.test/desired.git";
    round_trip(&way.checkout, &Remote { proxy: via(&proxy, userinfo, ""), ..remote(url, basic("hunter2")) });
    let requests = proxy.requests();
    let expected = "GET http://git.test/desired.git/info/refs?service=git-upload-pack HTTP/1.1";
    assert_eq!(requests.first().map(String::as_str), Some(expected));
    assert!(requests.iter().all(|line| line.contains(" http://git.test/desired.git/")), "{requests:?}");
}

#[rstest]
#[case::open(None, "")]
#[case::with_login(Some("me@corp:p:w/ü"), "me%40corp:p%3Aw%2F%C3%BC@")]
fn https_remotes_are_reached_through_a_tunnel(#[case] login: Option<&str>, #[case] userinfo: &str) {
    let way = Proxied::new();
    let authority = Authority::new();
    let front = authority.serve("git.test", address(&way.server));
    let proxy = RecordingProxy::start(front.address, login);
    let remote = Remote {
        proxy: via(&proxy, userinfo, ""),
        tls: trusting(&authority),
        ..remote("https://git.test/desired.git", basic("hunter2"))
    };
    round_trip(&way.checkout, &remote);
    let requests = proxy.requests();
    assert!(!requests.is_empty());
    assert!(requests.iter().all(|line| line == "CONNECT git.test:443 HTTP/1.1"), "{requests:?}");
}

#[rstest]
fn a_proxy_that_refuses(
    #[values("", "me:hunter4@")] userinfo: &str,
    #[values("http", "https")] scheme: &str,
) {
    let way = Proxied::new();
    let proxy = RecordingProxy::start(address(&way.server), Some("me:pw"));
    let worktree = way.worktree(&format!("{scheme}://git.test/desired.git"), via(&proxy, userinfo, ""));
    let (category, text) = failure(worktree.status(deadline()));
    assert_eq!(category, "AuthError", "{text}");
    assert!(text.contains("the proxy rejected the credentials") && !text.contains("hunter"), "{text}");
    assert_eq!((proxy.requests(), way.server.requests()), (Vec::new(), 0));
}

#[test]
fn a_proxy_that_is_down() {
    let way = Proxied::new();
    // Nothing listens on this port, and no other test can get it.
    let url = "http://me:hunter4@127.0.0.1:1";
    let fields = ProxyFields { http: Some(url), https: Some(url), no_proxy: Some("") };
    let settings = Proxy::parse("proxy", fields, None).unwrap();
    let shown = "through the proxy http://127.0.0.1:1: ";
    for url in ["http://git.test/desired.git", "https://git.test/desired.git"] {
        let (category, text) = failure(way.worktree(url, settings.clone()).status(deadline()));
        assert_eq!((category, text.contains("hunter")), ("TransportError", false), "{text}");
        assert!(
            text.starts_with(&format!("repository {url}: {shown}")) && text.contains("refused"),
            "{text}"
        );
    }
}

/// The address 0.0.0.0 leads to this machine, but is not a loopback address.
#[rstest]
#[case::address("0.0.0.0")]
#[case::network("0.0.0.0/8")]
#[case::everything("*")]
fn excepted_remotes_are_reached_directly(#[case] no_proxy: &str) {
    let way = Proxied::new();
    let proxy = RecordingProxy::start(address(&way.server), None);
    let url = format!("http://0.0.0.0:{}/desired.git", address(&way.server).port());
    let worktree = way.worktree(&url, via(&proxy, "", no_proxy));
    assert_eq!(worktree.status(deadline()).unwrap().state, SyncState::UpToDate);
    assert!(proxy.requests().is_empty());
    let proxied = way.worktree(&url, via(&proxy, "", ""));
    assert_eq!(proxied.status(deadline()).unwrap().state, SyncState::UpToDate);
    assert!(!proxy.requests().is_empty());
}

#[test]
fn loopback_needs_no_exception() {
    let way = Proxied::new();
    let proxy = RecordingProxy::start(address(&way.server), None);
    let worktree = way.worktree(&way.server.url("desired.git"), via(&proxy, "", ""));
    assert_eq!(worktree.status(deadline()).unwrap().state, SyncState::UpToDate);
    assert!(proxy.requests().is_empty());
}
