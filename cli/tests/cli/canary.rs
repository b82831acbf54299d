//! A secret in every place where the command line takes one, a server that repeats every request, and a search
//! for any of them in everything that is printed and written.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rstest::rstest;
use serde_json::{Value, json};

use crate::canaries::{self, BEGINNING, STORE_KEY};
use crate::environment::{Home, Run};
use crate::git::git;

/// All places, but for the key of the store.
const PLACES: [&str; 17] = [
    "access-key", "access-token", "basic", "environment", "git-basic", "header", "live", "oauth-password",
    "oauth-secret", "passphrase", "placed", "proxy", "proxy-url", "ssh-passphrase", "vault-password",
    "vault-role", "vault-token",
];

/// The secret of a place.
fn canary(place: &str) -> String {
    assert!(PLACES.contains(&place), "{place}");
    if ["live", "placed"].contains(&place) { canaries::wide_canary(place) } else { canaries::canary(place) }
}

/// What a search goes through.
#[derive(Default)]
struct Said(Vec<canaries::Said>);

impl Said {
    fn run(&mut self, run: &Run, what: &str) {
        self.0.push((format!("standard output of {what}"), run.stdout.clone()));
        self.0.push((format!("standard error of {what}"), run.stderr.clone()));
    }

    fn files(&mut self, directory: &Path) {
        canaries::files(directory, &["keys", "store", ".declarest/configs"], &mut self.0);
    }

    fn search(&self) {
        canaries::search("the store's key", STORE_KEY, &self.0);
        for place in PLACES {
            canaries::search(place, &canary(place), &self.0);
        }
        // No part of any may be left either.
        canaries::search_text("some place, in part,", BEGINNING, &self.0);
    }

    fn contains(&self, part: &str) -> usize {
        self.0.iter().filter(|(_, text)| text.contains(part)).count()
    }
}

/// Refuses every request and repeats all of it.
fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            std::thread::spawn(move || answer(&mut connection.unwrap()));
        }
    });
    url
}

fn answer(connection: &mut TcpStream) -> Option<()> {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let (mut first, mut head, mut values, mut length) = (String::new(), String::new(), String::new(), 0);
    reader.read_line(&mut first).ok()?;
    let target = first.trim_end().strip_suffix(" HTTP/1.1")?.to_owned();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap();
        }
        values += value.trim_end();
        head += &line;
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body).ok()?;
    let received = format!("{} {values} {target} {head} {head:?}", String::from_utf8_lossy(&body));
    let encoded = canaries::encoded(&received).join(" ");
    let said = json!({"errors": [received], "message": received, "note": encoded}).to_string();
    // As Go encodes.
    let said = said.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e");
    let live = json!({"id": "live", "pin": canary("live"), "pw": canary("placed"), "tier": "free"});
    let (status, said) = match target.as_str() {
        "POST /granted" => ("200 OK", json!({"access_token": canary("access-token")}).to_string()),
        "GET /apps/live" => ("200 OK", live.to_string()),
        "GET /apps/" | "GET /apps" => ("200 OK", json!([live]).to_string()),
        git if git.contains(".git/") && !head.to_ascii_lowercase().contains("authorization: ") => {
            ("401 Unauthorized\r\nwww-authenticate: Basic realm=\"git\"", said)
        }
        git if git.contains(".git/") => ("403 Forbidden", said),
        read if read.starts_with("GET ") && !read.starts_with("GET /v1/") => ("404 Not Found", said),
        _ => ("422 Unprocessable Content", said),
    };
    let length = said.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}");
    write!(connection, "{head}\r\nconnection: close\r\nx-received: {}\r\n\r\n{said}", values.trim()).ok()
}

/// A home with one context for each way to hold secrets.
fn home(url: &str) -> Home {
    let home = Home::new();
    home.write("keys/store", STORE_KEY);
    home.write("keys/passphrase", &canary("passphrase"));
    home.write(
        "keys/ssh",
        &format!("-----BEGIN {0}-----\n{1}\n-----END {0}-----\n", "PRIVATE KEY", STORE_KEY),
    );
    home.write("keys/broken.pem", &format!("-----BEGIN CERTIFICATE-----\n{STORE_KEY}\n"));
    home.write("repo/apps/a/resource.json", r#"{"id": "a", "pin": "{{secret .}}", "pw": "{{secret .}}"}"#);
    home.write(
        "repo/apps/live/resource.json",
        r#"{"id": "live", "pin": "{{secret ci}}", "pw": "{{secret .}}"}"#,
    );
    home.write("repo/apps/_/metadata.yaml", "resource: {secretAttributes: [/pin]}\n");
    let mut contexts = servers(url);
    contexts.extend(stores(url));
    contexts.extend(repositories(url));
    write_catalogue(&home, &contexts);
    home
}

fn write_catalogue(home: &Home, contexts: &[Value]) {
    let login = |name: &str, place: &str| json!({"name": name, "username": "ops", "password": canary(place)});
    let catalogue = json!({
        "currentContext": "basic",
        "credentials": [
            login("ops", "basic"), login("proxy", "proxy"), login("git", "git-basic"), login("vault", "vault-password"),
            {"name": "asked", "username": "ops", "password": {"prompt": true}},
        ],
        "contexts": contexts,
    });
    home.write(".declarest/configs/contexts.yaml", &catalogue.to_string());
}

fn login(name: &str) -> Value {
    json!({"credentialsRef": {"name": name}})
}

fn context(name: &str, http: Value) -> Value {
    let mut context = json!({
        "name": name,
        "repository": {"filesystem": {"baseDir": "<home>/repo"}},
        "secretStore": {"file": {"path": "<home>/store/secrets.json", "keyFile": "<home>/keys/store"}},
    });
    context["managedServer"] = Value::Object([("http".to_owned(), http)].into_iter().collect());
    context
}

const SERVERS: [&str; 8] =
    ["basic", "asked", "header", "refused-token", "token", "password-grant", "proxied", "environment"];

/// A context for each way to be let in by a managed server, [`SERVERS`] by name.
fn servers(url: &str) -> Vec<Value> {
    let header =
        |value: String| json!({"customHeaders": [{"header": "X-Key", "prefix": "Token", "value": value}]});
    let oauth = |path: &str| {
        json!({"oauth2": {
            "tokenURL": format!("{url}/{path}"), "clientID": "app", "clientSecret": canary("oauth-secret"),
        }})
    };
    let mut password = oauth("password");
    password["oauth2"]["grantType"] = "password".into();
    password["oauth2"]["username"] = "ops".into();
    password["oauth2"]["password"] = canary("oauth-password").into();
    let proxy = json!({"http": url, "auth": {"basic": login("proxy")}});
    vec![
        context("basic", json!({"url": url, "auth": {"basic": login("ops")}})),
        context("asked", json!({"url": url, "auth": {"basic": login("asked")}})),
        context("header", json!({"url": url, "auth": header(canary("header"))})),
        context("refused-token", json!({"url": url, "auth": oauth("refused")})),
        context("token", json!({"url": url, "auth": oauth("granted")})),
        context("password-grant", json!({"url": url, "auth": password})),
        context(
            "proxied",
            json!({"url": "http://api.example.test", "auth": header(canary("header")), "proxy": proxy}),
        ),
        context("environment", json!({"url": url, "auth": header("${CANARY}".to_owned())})),
    ]
}

const STORES: [&str; 5] = ["passphrase", "broken-key", "vault-token", "vault-password", "vault-role"];

/// A context for each store of secrets, [`STORES`] by name.
fn stores(url: &str) -> Vec<Value> {
    let of = |name: &str, store: Value| {
        let mut context = context(name, json!({"url": url, "auth": {"basic": login("ops")}}));
        context["secretStore"] = store;
        context
    };
    let vault = |auth: Value| json!({"vault": {"address": url, "auth": auth}});
    let passphrase = json!({"path": "<home>/store/secrets.json", "passphraseFile": "<home>/keys/passphrase"});
    let broken = json!({"path": "<home>/store/secrets.json", "key": canary("passphrase")});
    vec![
        of("passphrase", json!({"file": passphrase})),
        of("broken-key", json!({"file": broken})),
        of("vault-token", vault(json!({"token": canary("vault-token")}))),
        of("vault-password", vault(json!({"password": login("vault")}))),
        of("vault-role", vault(json!({"appRole": {"roleID": "app", "secretID": canary("vault-role")}}))),
    ]
}

const REPOSITORIES: [&str; 4] = ["git-key", "git-basic", "git-ssh", "broken-tls"];

/// A context for each way to be let in by a Git host, and one whose client certificate is none.
fn repositories(url: &str) -> Vec<Value> {
    let of = |name: &str, remote: Value| {
        let mut context = context(name, json!({"url": url, "auth": {"basic": login("ops")}}));
        context["repository"] = json!({"git": {"local": {"baseDir": "<home>/work"}, "remote": remote}});
        context
    };
    let remote = format!("{url}/desired.git");
    let ssh = json!({
        "privateKeyFile": "<home>/keys/ssh", "passphrase": canary("ssh-passphrase"), "insecureIgnoreHostKey": true,
    });
    let tls = json!({"clientCertFile": "<home>/keys/broken.pem", "clientKeyFile": "<home>/keys/ssh"});
    let http = json!({"url": url, "auth": {"basic": login("ops")}, "tls": tls});
    vec![
        of("git-key", json!({"url": remote, "auth": {"accessKey": {"token": canary("access-key")}}})),
        of("git-basic", json!({"url": remote, "auth": {"basic": login("git")}})),
        of("git-ssh", json!({"url": remote.replace("http://", "ssh://git@"), "auth": {"ssh": ssh}})),
        context("broken-tls", http),
    ]
}

/// Runs a command that prints all that it may print, and records its output.
fn run(home: &Home, said: &mut Said, context: &str, args: &[&str], stdin: &str) -> Run {
    let (asked, environment) = (canary("basic"), canary("environment"));
    let variables = [
        ("DECLAREST_CONTEXT_CREDENTIAL_ASKED_PASSWORD", asked.as_str()),
        ("CANARY", environment.as_str()),
        ("DECLAREST_CONTEXT", context),
        ("DECLAREST_VERBOSE", "3"),
    ];
    let run = home.run_with(args, &variables, stdin);
    said.run(&run, &format!("{args:?} with {context}"));
    run
}

fn store_secrets(home: &Home, said: &mut Said) {
    for key in ["/apps/a:/pw", "/apps/a:/pin", "/apps/live:/pw", "/apps/live:ci"] {
        let set = run(home, said, "basic", &["secret", "set", key, &canary("placed")], "");
        assert_eq!(set.code, 0, "{set}");
    }
}

#[rstest]
#[case::diff(&["resource", "diff", "/apps"], "")]
#[case::explain(&["resource", "explain", "/apps/live"], "")]
#[case::plan(&["plan", "/apps", "--out", "<home>/plan.json"], "")]
#[case::plan_json(&["plan", "/apps", "-o", "json"], "")]
#[case::apply(&["resource", "apply", "/apps"], "")]
#[case::apply_input(&["resource", "apply", "/apps/a", "-f", "-"], r#"{"id": "a", "pw": "{{secret .}}"}"#)]
#[case::create(&["resource", "create", "/apps/a"], "")]
#[case::update(&["resource", "update", "/apps/a"], "")]
#[case::delete(&["resource", "delete", "/apps/a", "--yes"], "")]
#[case::get(&["resource", "get", "/apps/a"], "")]
#[case::list(&["resource", "list", "/nothing"], "")]
#[case::save(&["resource", "save", "/apps/b"], "")]
#[case::check(&["server", "check"], "")]
#[case::context_check(&["context", "check"], "")]
fn servers_that_repeat_their_requests(#[case] args: &[&str], #[case] stdin: &str) {
    let home = home(&echo());
    let mut said = Said::default();
    store_secrets(&home, &mut said);
    if ["delete", "get", "save"].contains(&args[1]) {
        // These read no store: that something is secret they know from metadata alone.
        home.write("repo/apps/_/metadata.yaml", "resource: {secretAttributes: [/pin, /pw]}\n");
    }
    for context in SERVERS {
        let _ = run(&home, &mut said, context, args, stdin);
    }
    assert!(said.contains("<redacted>") > SERVERS.len() / 2, "they repeated their requests");
    said.files(&home.path(""));
    said.search();
}

#[rstest]
#[case::list(&["secret", "list"])]
#[case::init(&["secret", "init"])]
#[case::get(&["secret", "get", "/apps/a:none"])]
#[case::check(&["context", "check"])]
#[case::apply(&["resource", "apply", "/apps"])]
fn stores_that_repeat_their_requests(#[case] args: &[&str]) {
    let home = home(&echo());
    let mut said = Said::default();
    store_secrets(&home, &mut said);
    for context in STORES {
        assert_ne!(run(&home, &mut said, context, args, "").code, 0, "{context}");
    }
    for context in ["vault-token", "vault-password", "vault-role"] {
        let set = run(&home, &mut said, context, &["secret", "set", "/apps/a:/pw", &canary("placed")], "");
        assert_eq!(set.code, 2, "{set}");
    }
    assert!(said.contains("<redacted>") > 0, "they repeated their requests");
    said.files(&home.path(""));
    said.search();
}

#[test]
fn git_hosts_that_repeat_their_requests() {
    let home = home(&echo());
    let mut said = Said::default();
    fs::create_dir(home.path("work")).unwrap();
    git(&home.path("work"), &["init", "--quiet", "--initial-branch=main"]);
    git(&home.path("work"), &["commit", "--quiet", "--allow-empty", "--message", "first"]);
    for context in REPOSITORIES {
        for command in ["push", "refresh", "status", "init"] {
            let run = run(&home, &mut said, context, &["repository", command], "");
            assert!(run.code != 0 || command != "push" || context == "broken-tls", "{run}");
        }
        assert_ne!(run(&home, &mut said, context, &["context", "check"], "").code, 0, "{context}");
    }
    said.files(&home.path(""));
    said.search();
}

#[test]
fn secrets_that_are_saved() {
    let home = home(&echo());
    let mut said = Said::default();
    store_secrets(&home, &mut said);
    let payload = json!({"id": "b", "pin": canary("live"), "apiKey": canary("placed")}).to_string();
    let save = ["resource", "save", "/apps/b", "-f", "-"];
    let refused = run(&home, &mut said, "basic", &save, &payload);
    assert_eq!(refused.code, 2, "{refused}");
    let saved = run(&home, &mut said, "basic", &[&save[..], &["--secret-attributes"]].concat(), &payload);
    assert_eq!(saved.code, 0, "{saved}");
    let whole =
        run(&home, &mut said, "basic", &["resource", "save", "/apps/c", "--secret", "-f", "-"], &payload);
    assert_eq!(whole.code, 0, "{whole}");
    // What the server has is read, kept and shown as placeholders.
    let read = ["resource", "save", "/apps/live", "--secret-attributes=/pin", "--force"];
    home.write("repo/apps/_/metadata.yaml", "resource: {secretAttributes: [/pin, /pw]}\n");
    for args in [
        &read[..],
        &["resource", "get", "/apps/live"],
        &["resource", "get", "/apps/"],
        &["resource", "list", "/apps"],
        &["resource", "get", "/apps/b", "--source", "repository"],
        &["resource", "diff", "/apps/live"],
        &["secret", "list"],
        &["secret", "detect"],
        &["context", "list", "-o", "text"],
        &["context", "current", "-o", "text"],
        &["context", "resolve", "-o", "text"],
    ] {
        let run = run(&home, &mut said, "basic", args, "");
        assert_eq!(run.code, 0, "{args:?} {run}");
    }
    for (args, input) in [
        (&["secret", "detect", "-f", "-"][..], payload.as_str()),
        (&["secret", "mask", "-f", "-"], &json!({"apiKey": canary("placed")}).to_string()),
        (&["secret", "normalize", "-f", "-"], r#"{"a": "{{ secret  ci }}"}"#),
    ] {
        let run = run(&home, &mut said, "basic", args, input);
        assert_eq!(run.code, 0, "{args:?} {run}");
    }
    said.files(&home.path(""));
    said.search();
}

/// Programs get the catalogue as it is; no other output mentions it.
#[test]
fn a_catalogue_is_shown_to_programs_on_standard_output_alone() {
    let home = home(&echo());
    let mut said = Said::default();
    for args in
        [&["context", "show"][..], &["context", "resolve"], &["context", "list"], &["context", "current"]]
    {
        let run = run(&home, &mut Said::default(), "header", args, "");
        assert_eq!(run.code, 0, "{args:?} {run}");
        assert!(run.stdout.contains("c4n-header"), "{args:?}");
        said.0.push((format!("standard error of {args:?}"), run.stderr));
    }
    said.search();
}

#[rstest]
#[case::server("/managedServer/http/url", "http://ops:<secret>@127.0.0.1:1")]
#[case::broken_server("/managedServer/http/url", "http://ops:<secret>@")]
#[case::token("/managedServer/http/auth/oauth2/tokenURL", "http://ops:<secret>@127.0.0.1:1")]
#[case::openapi("/managedServer/http/openapi", "https://ops:<secret>@127.0.0.1:1/openapi.json")]
#[case::health("/managedServer/http/healthCheck", "http://ops:<secret>@127.0.0.1:1/up")]
#[case::git("/repository/git/remote/url", "https://ops:<secret>@git.test/r.git")]
#[case::broken_git("/repository/git/remote/url", "https://ops:<secret>@")]
#[case::vault("/secretStore/vault/address", "https://ops:<secret>@127.0.0.1:1")]
#[case::bundle("/metadata/bundle", "https://ops:<secret>@127.0.0.1:1/b")]
#[case::proxy("/managedServer/http/proxy/http", "http://ops:<secret>@")]
#[case::other_proxy("/managedServer/http/proxy/http", "ftp://ops:<secret>@proxy.test")]
fn urls_with_credentials_are_refused_and_not_repeated(
    #[case] field: &str,
    #[case] url: &str,
    #[values("c4n-proxy-url", "c4n-proxy-url%2F%2B%26%22%25s3cret", "c4n-proxy-url/+&\"%s3cret")]
    secret: &str,
    #[values(false, true)] referred: bool,
) {
    let url = url.replace("<secret>", secret);
    let mut context = json!({
        "name": "basic",
        "repository": {"git": {"local": {"baseDir": "<home>/work"}, "remote": {"url": "https://git.test/r.git"}}},
        "managedServer": {"http": {
            "url": "http://127.0.0.1:1", "proxy": {"http": ""},
            "auth": {"oauth2": {"tokenURL": "http://127.0.0.1:1", "clientID": "a", "clientSecret": "b"}},
        }},
        "secretStore": {"vault": {"address": "http://127.0.0.1:1", "auth": {"token": "t"}}},
    });
    let (parent, name) = field.rsplit_once('/').unwrap();
    if context.pointer(parent).is_none() {
        context[&parent[1..]] = json!({});
    }
    let place = context.pointer_mut(parent).unwrap();
    place[name] = if referred { "${URL}".into() } else { url.as_str().into() };
    let home = Home::new();
    write_catalogue(&home, &[context]);
    let mut said = Said::default();
    for args in [
        &["context", "check"][..],
        &["server", "check"],
        &["repository", "push"],
        &["secret", "list"],
        &["resource", "get", "/apps/a"],
        &["resource", "metadata", "get", "/apps/a"],
    ] {
        let run = home.run_with(args, &[("URL", &url), ("DECLAREST_VERBOSE", "3")], "");
        assert!(run.code != 0 || args.contains(&"metadata"), "{run}");
        said.run(&run, &format!("{args:?}"));
    }
    said.files(&home.path(""));
    said.search();
}

#[test]
fn a_proxy_of_the_environment_is_not_repeated() {
    let (url, mut said) = (echo(), Said::default());
    let home = home(&url);
    let encoded = utf8_percent_encode(&canary("proxy-url"), NON_ALPHANUMERIC).to_string();
    for proxy in [url.replace("http://", &format!("http://ops:{encoded}@")), format!("http://ops:{encoded}@")]
    {
        for args in [&["server", "check"][..], &["resource", "apply", "/apps/a"], &["context", "check"]] {
            let mut catalogue =
                home.catalogue().replace(&format!("\"url\":\"{url}\""), "\"url\":\"http://api.test\"");
            catalogue = catalogue.replace("\"currentContext\":\"basic\"", "\"currentContext\":\"header\"");
            home.write(".declarest/configs/contexts.yaml", &catalogue);
            let run = home.run_with(args, &[("HTTP_PROXY", &proxy), ("DECLAREST_VERBOSE", "3")], "");
            said.run(&run, &format!("{args:?}"));
        }
    }
    assert!(said.contains("<redacted>") > 2, "the proxy repeated its request");
    said.search();
}

#[test]
fn verbose_insecure_shows_the_secret_and_warns() {
    let home = home(&echo());
    let args = ["resource", "apply", "/apps/a", "-vvv", "--verbose-insecure", "-c", "header"];
    store_secrets(&home, &mut Said::default());
    let shown = home.run(&args);
    assert!(shown.stderr.contains("[WARNING] --verbose-insecure: the output of --verbose"), "{shown}");
    let lines: Vec<&str> = shown.stderr.lines().filter(|line| line.starts_with("debug: ")).collect();
    assert!(lines.iter().any(|line| line.contains(&canary("header"))), "{shown}");
    assert!(shown.stderr.contains("\"pw\": \"c4n-placed"), "{shown}");
    // The message of the failure does not contain it.
    let last = shown.stderr.lines().last().unwrap();
    assert!(last.contains("422") && !last.contains("c4n-"), "{last}");
}
