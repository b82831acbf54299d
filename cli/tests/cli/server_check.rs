//! `server check`: TLS, proxies and credentials on the way to a server.

use rstest::rstest;

use crate::environment::Home;
use crate::server::Server;

fn home(http: &str) -> Home {
    Home::with_catalogue(&format!(
        "currentContext: dev\ncredentials: [{{name: gate, username: alice, password: {{prompt: true}}}}]\ncontexts:\n\
         - name: dev\n  managedServer: {{http: {{{http}}}}}\n"
    ))
}

const KEY: &str = "auth: {customHeaders: [{header: K, value: v}]}";

#[rstest]
#[case::base_url("", "/api")]
#[case::path(", healthCheck: /up", "/api/up")]
#[case::url(", healthCheck: '<url>/ping'", "/ping")]
fn what_is_asked(#[case] check: &str, #[case] target: &str) {
    let server = Server::new(&[("GET /api", 200, ""), ("GET /api/up", 204, ""), ("GET /ping", 200, "pong")]);
    let check = check.replace("<url>", server.url());
    let run = home(&format!("url: '{}/api', {KEY}{check}", server.url())).run(&["server", "check"]);
    let expected = format!("server check: OK (probe succeeded: GET {}{target})\n", server.url());
    assert_eq!((run.code, run.stdout.as_str()), (0, expected.as_str()), "{run}");
    assert_eq!(server.requests(), format!("GET {target}"));
}

#[rstest]
#[case("GET /api", 401, 4)]
#[case("GET /api", 404, 3)]
#[case("GET /api", 409, 5)]
#[case("GET /api", 422, 2)]
#[case("GET /api", 500, 6)]
fn what_fails(#[case] route: &'static str, #[case] status: u16, #[case] code: i32) {
    let routes: &'static [_] = Box::leak(Box::new([(route, status, "no")]));
    let server = Server::new(routes);
    let run = home(&format!("url: '{}/api', {KEY}", server.url())).run(&["server", "check"]);
    assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{run}");
    assert!(run.stderr.contains(&format!("failed with status {status}: no")), "{run}");
}

#[rstest]
#[case::query("/up?deep=true", "must not have a query")]
#[case::elsewhere("https://elsewhere.test/up", "with the scheme, host and port of url")]
fn checks_that_cannot_be(#[case] check: &str, #[case] reason: &str) {
    let server = Server::new(&[]);
    let run =
        home(&format!("url: '{}', {KEY}, healthCheck: '{check}'", server.url())).run(&["server", "check"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains(reason), "{run}");
    assert_eq!(server.requests(), "");
}

#[test]
fn tokens_are_sent() {
    let server = Server::new(&[("POST /token", 200, "{\"access_token\": \"t0ken\"}"), ("GET /", 200, "{}")]);
    let url = server.url();
    let auth = format!("auth: {{oauth2: {{tokenURL: '{url}/token', clientID: a, clientSecret: b}}}}");
    let run = home(&format!("url: '{url}', {auth}")).run(&["server", "check"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(server.requests(), "POST /token\nGET /");
}

/// The grant `password` needs a user.
#[test]
fn a_password_grant_without_user() {
    let auth =
        "auth: {oauth2: {tokenURL: 'https://h.test/t', clientID: a, clientSecret: b, grantType: password}}";
    let run = home(&format!("url: 'https://h.test', {auth}")).run(&["server", "check"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("oauth2") && run.stderr.contains("password"), "{run}");
}

#[test]
fn credentials_of_a_proxy_are_needed_only_if_it_is_used() {
    let proxy = Server::new(&[("GET http://api.test/", 200, "{}"), ("GET /", 200, "{}")]);
    let through =
        format!("proxy: {{http: '{}', auth: {{basic: {{credentialsRef: {{name: gate}}}}}}}}", proxy.url());
    let proxied = home(&format!("url: 'http://api.test', {KEY}, {through}"));
    let run = proxied.run(&["server", "check"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("; set DECLAREST_CONTEXT_CREDENTIAL_GATE_PASSWORD"), "{run}");
    let password = ("DECLAREST_CONTEXT_CREDENTIAL_GATE_PASSWORD", "canary-pass");
    let run = proxied.run_with(&["server", "check"], &[password], "");
    assert_eq!((run.code, proxy.requests().as_str()), (0, "GET http://api.test/"), "{run}");
    assert!(!run.stderr.contains("canary"), "{run}");
    // Loopback is reached directly, so the password is not needed.
    let local = home(&format!("url: '{}', {KEY}, {through}", proxy.url()));
    assert_eq!(local.run(&["server", "check"]).code, 0);
}

#[test]
fn the_environment_names_a_proxy_unless_a_block_turns_it_off() {
    let proxy = Server::new(&[("GET http://api.test/", 200, "{}")]);
    let variable = ("HTTP_PROXY", proxy.url());
    let run = home(&format!("url: 'http://api.test', {KEY}")).run_with(&["server", "check"], &[variable], "");
    assert_eq!(run.code, 0, "{run}");
    let direct = home(&format!("url: 'http://api.test', {KEY}, proxy: {{}}"));
    let run = direct.run_with(&["server", "check"], &[variable], "");
    assert_eq!(run.code, 6, "{run}");
    assert_eq!(proxy.requests(), "GET http://api.test/");
}

#[test]
fn certificates_that_cannot_be_used() {
    let home = home(&format!("url: 'https://h.test', {KEY}, tls: {{caCertFile: '<home>/ca.pem'}}"));
    let run = home.run(&["server", "check"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("tls.caCertFile <home>/ca.pem: No such file"), "{run}");
    home.write("ca.pem", "nothing");
    let run = home.run(&["server", "check"]);
    assert!(
        run.stderr.contains("tls.caCertFile <home>/ca.pem: it does not contain a PEM certificate"),
        "{run}"
    );
}

#[test]
fn verbose_output_is_redacted() {
    let routes = &[
        ("POST /token", 200, "{\"access_token\": \"canary-token\"}"),
        ("GET /?key=canary-query", 500, "no canary-token"),
    ];
    let server = Server::new(routes);
    let url = server.url();
    let auth =
        format!("auth: {{oauth2: {{tokenURL: '{url}/token', clientID: a, clientSecret: canary-secret}}}}");
    let home = home(&format!("url: '{url}/?key=canary-query', {auth}"));
    let run = home.run(&["server", "check", "-vvv"]);
    assert_eq!(run.code, 6, "{run}");
    let printed = run.to_string();
    assert!(!printed.contains("canary"), "{printed}");
    for line in [
        "debug: TLS: the system's authorities\n".to_owned(),
        format!("verbose: POST {url}/token (auth: oauth2)\n"),
        format!("verbose: GET {url}/?key=<redacted> (auth: oauth2)\n"),
        "debug: > authorization: Bearer <redacted>\n".to_owned(),
        "debug: < no <redacted>\n".to_owned(),
    ] {
        assert!(printed.contains(&line), "{line}{printed}");
    }
    let run = home.run(&["server", "check", "-vvv", "--verbose-insecure"]);
    assert!(run.stderr.contains("[WARNING] --verbose-insecure: the output of --verbose"), "{run}");
    assert!(run.stderr.contains("authorization: Bearer canary-token"), "{run}");
    assert!(!run.stderr.contains("canary-secret"), "{run}");
}

#[test]
fn a_server_that_does_not_answer_in_time() {
    // Connections wait in the queue of the listener, and are never accepted.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let home = Home::with_catalogue(&format!(
        "currentContext: dev\ncontexts: [{{name: dev, managedServer: {{http: {{url: '{url}'}}}}}}]\n"
    ));
    let start = std::time::Instant::now();
    let run = home.run(&["server", "check", "--timeout", "1s"]);
    assert_eq!(run.code, 6, "{run}");
    // Less than one attempt without the flag.
    assert!(start.elapsed() < std::time::Duration::from_secs(25), "{:?}", start.elapsed());
}
