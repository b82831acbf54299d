//! How long commands take, beside their targets. Prints a table; run by `make bench-cli`. Arguments are the names of
//! rows; without any, all rows are measured.

#![allow(clippy::print_stdout, reason = "the table is the product")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark that cannot go on has no result")]
#![allow(dead_code, reason = "the server has more functions than a benchmark needs")]

#[path = "../../demo/rest_server/mod.rs"]
mod rest_server;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use declarest_core::metadata::Metadata;
use declarest_core::path::LogicalPath;
use declarest_core::proxy::Proxy;
use declarest_core::repository::{DirTree, Tree};
use declarest_core::server::{Auth, BaseUrl, Client, Gate, Settings, Throttling};
use declarest_core::sync::{self, Options, Selection, Session, Stop};
use declarest_core::transport::TlsConfig;
use rest_server::{Config, RestServer};

/// Members of one collection.
const MEMBERS: usize = 1000;
/// How often a row is measured; the median counts.
const ROUNDS: usize = 5;
/// How often a row of a few milliseconds is measured.
const MANY_ROUNDS: usize = 51;
/// The content of a full pipe.
const PIPE: usize = 64 << 10;

fn main() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Cargo adds `--bench`.
    let rows: Vec<String> = std::env::args().skip(1).filter(|text| text != "--bench").collect();
    println!("| row | target | measured | | from |\n|---|---|---|---|---|");
    let measured = |name: &str| rows.is_empty() || rows.iter().any(|row| row == name);
    if measured("version") {
        version();
    }
    if measured("diff") {
        full_diff();
        small_diff();
    }
    if measured("validate") {
        validate();
    }
    if measured("complete") {
        complete();
    }
}

/// Prints a row, whose figure must be at most `target`.
fn row(name: &str, target: f64, unit: &str, figure: f64, from: &str) {
    let verdict = if figure <= target { "ok" } else { "missed" };
    println!("| {name} | {target} {unit} | {figure:.2} {unit} | {verdict} | {from} |");
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn version() {
    let place = Place::new(0);
    let time = median(MANY_ROUNDS, || place.run(&["version"]));
    row("version, time", 5.0, "ms", milliseconds(time), &format!("median of {MANY_ROUNDS}"));
    row("version, peak memory", 12.0, "MiB", peak(place.command(&["version"])), "`VmHWM`");
}

/// Returns the peak memory of a command in MiB. Its output goes into a full pipe, so it waits there at its end.
fn peak(mut command: Command) -> f64 {
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&vec![b'-'; PIPE]).unwrap();
    let mut child = command.stdout(writer).spawn().unwrap();
    // The command keeps the other end of the pipe.
    drop(command);
    std::thread::sleep(Duration::from_millis(500));
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    assert!(child.wait().unwrap().success() && rest.len() > PIPE);
    kib / 1024.0
}

/// `resource diff / -r` of 10,000 resources beside a full run of the engine on the same files and server.
fn full_diff() {
    let place = Place::new(10_000);
    let (mut command, mut engine) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        command.push(place.run(&["resource", "diff", "/", "-r"]));
        engine.push(place.engine());
    }
    let (command, engine) = (middle(command), middle(engine));
    let from = format!("{:.0} ms / {:.0} ms", milliseconds(command), milliseconds(engine));
    row("diff of 10,000 resources", 1.2, "", command.as_secs_f64() / engine.as_secs_f64(), &from);
}

fn small_diff() {
    let place = Place::new(1000);
    let time = median(ROUNDS, || place.run(&["resource", "diff", "/", "-r"]));
    row("diff of 1,000 resources", 120.0, "ms", milliseconds(time), &format!("median of {ROUNDS}"));
}

fn validate() {
    let place = Place::new(100_000);
    let time = place.run(&["validate"]);
    row("validate of 100,000 files", 10.0, "s", time.as_secs_f64(), "once");
}

/// Candidates for a path that only the repository knows, and for one that the server lists.
fn complete() {
    let place = Place::new(1000);
    for (name, words) in [
        ("completion from the repository", ["resource", "apply", "/c0"]),
        ("completion from the server", ["resource", "get", "/c000/"]),
    ] {
        let words = ["__complete"].iter().chain(&words).copied().collect::<Vec<_>>();
        let time = median(ROUNDS, || place.run(&words));
        row(name, 100.0, "ms", milliseconds(time), &format!("median of {ROUNDS}"));
    }
}

fn median(rounds: usize, mut measure: impl FnMut() -> Duration) -> Duration {
    middle((0..rounds).map(|_| measure()).collect())
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// A home with a repository of resources, and a server that has the same.
struct Place {
    home: tempfile::TempDir,
    server: RestServer,
}

impl Place {
    fn new(count: usize) -> Self {
        let home = tempfile::tempdir().unwrap();
        let server = RestServer::start(Config::default()).unwrap();
        for number in 0..count {
            let (collection, name) = (number / MEMBERS, number % MEMBERS);
            let path = format!("c{collection:03}/r{name:04}");
            let payload = serde_json::json!({
                "id": format!("r{name:04}"),
                "description": "a resource as long as one that a person writes",
                "enabled": true,
                "limits": {"requests": number, "connections": 10, "sessions": 3},
                "tags": ["blue", "green", "red"],
            });
            let directory = home.path().join("repo").join(&path);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("resource.json"), payload.to_string()).unwrap();
            server.put_by_hand(&format!("/{path}"), payload);
        }
        fs::create_dir_all(home.path().join("repo")).unwrap();
        let catalogue = format!(
            "currentContext: dev\ncontexts:\n- name: dev\n  repository: {{filesystem: {{baseDir: '{}'}}}}\n  \
             managedServer: {{http: {{url: '{}'}}}}\n",
            home.path().join("repo").display(),
            server.url()
        );
        fs::write(home.path().join("contexts.yaml"), catalogue).unwrap();
        Self { home, server }
    }

    fn repository(&self) -> PathBuf {
        self.home.path().join("repo")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_declarest"));
        command.args(args).current_dir(self.home.path()).stdin(Stdio::null());
        command.env_clear().env("HOME", self.home.path()).env("DECLAREST_CONTEXTS_FILE", "contexts.yaml");
        command
    }

    /// Runs a command that must succeed, and returns its time.
    fn run(&self, args: &[&str]) -> Duration {
        let mut command = self.command(args);
        let start = Instant::now();
        let output = command.output().unwrap();
        let time = start.elapsed();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        time
    }

    /// A full run of the engine that finds nothing to do, from opening the tree to the plan.
    fn engine(&self) -> Duration {
        let (repository, url) = (self.repository(), self.server.url());
        let start = Instant::now();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let plan = runtime.block_on(async {
            let tree: Arc<dyn Tree> = Arc::new(DirTree::open(&repository).unwrap());
            let selection = Selection::full(tree.as_ref(), &LogicalPath::root(), true).unwrap();
            let metadata = Arc::new(Metadata::new(Arc::clone(&tree)));
            let session = Session::new(tree, metadata, client(&url));
            let options = Options { keep_compared: true, ..Options::default() };
            sync::plan(&session, selection, &options, &Stop::default()).await
        });
        let time = start.elapsed();
        assert!(plan.failures.is_empty() && plan.is_empty(), "{:?}", plan.summary());
        time
    }
}

fn client(url: &str) -> Client {
    let settings = Settings {
        base_url: BaseUrl::parse(url).unwrap(),
        auth: Auth::None,
        tls: TlsConfig::default().into(),
        proxy: Proxy::default(),
        default_headers: BTreeMap::new().into_iter().collect(),
        health_check: None,
        cross_origin_redirects: true,
        trace: None,
    };
    Client::new(settings, Arc::new(Gate::new(&Throttling::default()).unwrap()), None).unwrap()
}
