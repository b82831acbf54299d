//! Credentials, certificates and proxies on the way to a remote.

use std::net::SocketAddr;

use declarest_core::proxy::{Proxy, ProxyFields};
use declarest_core::repository::{Remote, RemoteAuth, RemoteTls, RemoteUrl, SshFiles, SyncState, Worktree};
use rstest::rstest;
use url::Url;

use crate::checkout::{Checkout, deadline, failure};
use crate::git_http::GitHttp;
use crate::git_remote::git;
use crate::network::{Authority, RecordingProxy};
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
fn ssh_with_a_passphrase_and_known_hosts_in_files() {
    let checkout = Checkout::of_one_commit();
    let sshd = Sshd::start();
    let (key, hosts) = (checkout.remote.root().join("key"), checkout.remote.root().join("hosts"));
    std::fs::write(&key, sshd.locked_client_key()).unwrap();
    std::fs::write(&hosts, sshd.known_hosts()).unwrap();
    let files = SshFiles {
        private_key: key,
        passphrase: Some(PASSPHRASE.to_owned().into()),
        known_hosts: Some(hosts.clone()),
        ..SshFiles::default()
    };
    let url = sshd.url(&checkout.remote.bare());
    let status = |auth: RemoteAuth| checkout.worktree_with(remote(&url, auth)).status(deadline());
    assert!(status(RemoteAuth::from_ssh_files(files.clone()).unwrap()).is_ok());
    let wrong = SshFiles { passphrase: Some("hunter2".to_owned().into()), ..files.clone() };
    let (category, text) = failure(status(RemoteAuth::from_ssh_files(wrong).unwrap()));
    assert_eq!((category, text.contains("hunter2")), ("AuthError", false), "{text}");

    // Opening a locked key is slow by design; the rest goes without.
    std::fs::write(&files.private_key, sshd.client_key()).unwrap();
    let files = SshFiles { passphrase: None, ..files };
    round_trip(&checkout, &remote(&url, RemoteAuth::from_ssh_files(files.clone()).unwrap()));
    std::fs::write(&hosts, sshd.wrong_known_hosts()).unwrap();
    let (category, text) = failure(status(RemoteAuth::from_ssh_files(files.clone()).unwrap()));
    assert_eq!((category, text.contains("intercepting")), ("AuthError", true), "{text}");
    let trusting = SshFiles { insecure_ignore_host_key: true, ..files };
    assert!(status(RemoteAuth::from_ssh_files(trusting).unwrap()).is_ok());
}

/// How a checkout fares with a TLS server called `localhost`.
fn tls_failure(checkout: &Checkout, authority: &Authority, name: &str, tls: RemoteTls) -> Option<String> {
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
    let trusting = |authority: &Authority| RemoteTls::trusting("bundle", authority.pem().as_bytes()).unwrap();
    let checkout = Checkout::of_one_commit();
    let unknown = tls_failure(&checkout, &ours, "localhost", RemoteTls::default()).unwrap();
    assert!(unknown.contains("certificate"), "{unknown}");
    let foreign = tls_failure(&checkout, &ours, "localhost", trusting(&theirs)).unwrap();
    assert!(foreign.contains("its certificate: "), "{foreign}");
    let misnamed = tls_failure(&checkout, &ours, "git.test", trusting(&ours)).unwrap();
    assert!(misnamed.contains("git.test"), "{misnamed}");
    assert_eq!(tls_failure(&checkout, &ours, "localhost", trusting(&ours)), None);
}

#[test]
fn verification_can_be_turned_off() {
    let checkout = Checkout::of_one_commit();
    assert_eq!(tls_failure(&checkout, &Authority::new(), "git.test", RemoteTls::insecure()), None);
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

#[test]
fn http_remotes_are_refused_rather_than_reached_past_the_proxy() {
    let way = Proxied::new();
    let proxy = RecordingProxy::start(address(&way.server), None);
    let worktree = way.worktree("http://git.test/desired.git", via(&proxy, "me:hunter4@", ""));
    let refusals = [failure(worktree.status(deadline())), failure(worktree.push(false, deadline()))];
    let expected = format!(
        "repository http://git.test/desired.git is to be reached through the proxy http://{}, which works \
         for https only; use an https URL, or name its host in noProxy",
        proxy.server.address
    );
    for (category, text) in refusals {
        assert_eq!((category, text), ("ValidationError", expected.clone()));
    }
    assert_eq!((proxy.requests(), way.server.requests()), (Vec::new(), 0));
}

#[rstest]
#[case::open(None, "")]
#[case::with_login(Some("me@corp:p:w/ü"), "me%40corp:p%3Aw%2F%C3%BC@")]
fn https_remotes_are_reached_through_a_tunnel(#[case] login: Option<&str>, #[case] userinfo: &str) {
    let way = Proxied::new();
    let authority = Authority::new();
    let front = authority.serve("git.test", address(&way.server));
    let proxy = RecordingProxy::start(front.address, login);
    let tls = RemoteTls::trusting("bundle", authority.pem().as_bytes()).unwrap();
    let remote = Remote {
        proxy: via(&proxy, userinfo, ""),
        tls,
        ..remote("https://git.test/desired.git", basic("hunter2"))
    };
    round_trip(&way.checkout, &remote);
    let requests = proxy.requests();
    assert!(!requests.is_empty());
    assert!(requests.iter().all(|line| line == "CONNECT git.test:443 HTTP/1.1"), "{requests:?}");
}

#[rstest]
#[case::none("")]
#[case::wrong("me:hunter4@")]
fn a_proxy_that_refuses(#[case] userinfo: &str) {
    let way = Proxied::new();
    let proxy = RecordingProxy::start(address(&way.server), Some("me:pw"));
    let worktree = way.worktree("https://git.test/desired.git", via(&proxy, userinfo, ""));
    let (category, text) = failure(worktree.status(deadline()));
    assert_eq!(category, "AuthError", "{text}");
    assert!(text.contains("the proxy on the way there") && !text.contains("hunter"), "{text}");
    assert_eq!((proxy.requests(), way.server.requests()), (Vec::new(), 0));
}

#[test]
fn a_proxy_that_is_down() {
    let way = Proxied::new();
    let proxy = RecordingProxy::start(address(&way.server), None);
    let settings = via(&proxy, "me:hunter4@", "");
    drop(proxy);
    let (category, text) = failure(way.worktree("https://git.test/desired.git", settings).status(deadline()));
    assert_eq!((category, text.contains("hunter")), ("TransportError", false), "{text}");
}

/// The address 0.0.0.0 leads to this machine, but is no loopback address.
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
    assert_eq!(failure(proxied.status(deadline())).0, "ValidationError");
}

#[test]
fn loopback_needs_no_exception() {
    let way = Proxied::new();
    let proxy = RecordingProxy::start(address(&way.server), None);
    let worktree = way.worktree(&way.server.url("desired.git"), via(&proxy, "", ""));
    assert_eq!(worktree.status(deadline()).unwrap().state, SyncState::UpToDate);
    assert!(proxy.requests().is_empty());
}
