//! An operator with little memory, and users who try to exhaust it: each attack ends as a condition that names the cause,
//! and the policies of other users continue.

#![allow(clippy::print_stderr, reason = "figures, and why nothing was tested")]

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use axum::extract::Query;
use axum::http::StatusCode;
use axum::http::header::LINK;
use axum::routing::get;
use axum::{Json, Router};
use declarest_operator::controller::resource_repository::RECEIVED_AT;
use declarest_operator::crd::{ManagedServer, ResourceRepository, SecretStore, SyncPolicy};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::support::cgroup::Cgroup;
use crate::support::git_http::GitHttp;
use crate::support::git_remote::{BRANCH, GitRemote, git as run_git, git_command};
use crate::support::rest_server::{Config, RestServer};
use crate::support::root::skip;
use crate::support::world::{World, declarest, ready};

const LIMIT: usize = 512 << 20;

/// An operator in a cgroup of 512 MiB, and a user with a policy that must go on.
struct Crowded {
    world: World,
    git: GitRemote,
    server: RestServer,
}

impl Crowded {
    /// Returns `None` with a message if this machine does not let the test create cgroups.
    async fn start() -> Option<Self> {
        let Some(cgroup) = Cgroup::limited(LIMIT) else {
            return skip("cgroups cannot be created here; run as root");
        };
        let config =
            Config { collections: vec!["/items".to_owned(), "/big".to_owned()], ..Config::default() };
        let (git, server) = (GitRemote::new(), RestServer::start(config).unwrap());
        git.write("items/one/resource.json", r#"{"id": "one", "size": 1}"#);
        git.commit("one");
        git.push();
        let mut world = World::start_within(cgroup).await;
        world.patience *= 3;
        world.create_repository(&git.file_url(), Value::Null).await;
        world.create_server(json!({"baseURL": server.url()})).await;
        world.create_policy(json!({"source": {"path": "/items"}})).await;
        world.applied(&git.head()).await;
        Some(Self { world, git, server })
    }

    /// Lets the other user push, and waits until that is applied by the same process.
    async fn goes_on(&self, size: u32) {
        self.git.write("items/one/resource.json", format!(r#"{{"id": "one", "size": {size}}}"#));
        let head = self.git.commit("more");
        self.git.push();
        self.world.notify().await;
        self.world.applied(&head).await;
        assert_eq!(self.server.get("/items/one").unwrap()["size"], size);
        let (resident, all) = (self.world.peak_memory(), self.world.cgroup_peak());
        eprintln!("peak: {resident} MiB resident, {all:?} MiB with page cache");
    }

    async fn attack(&self, git: &GitRemote) -> GitHttp {
        self.attack_on("server", git).await
    }

    /// A policy called `attack` for `/big` of another repository.
    /// Git runs in a process of its own: with a `file` URL, the operator would also be the server that packs objects.
    async fn attack_on(&self, server: &str, git: &GitRemote) -> GitHttp {
        let http = GitHttp::start(git.root(), None);
        let spec = json!({"type": "git", "git": {"url": http.url("desired.git")}});
        self.world.create(declarest("ResourceRepository", "attack", &spec)).await;
        let spec = json!({
            "resourceRepositoryRef": {"name": "attack"}, "managedServerRef": {"name": server},
            "source": {"path": "/big"}, "syncInterval": "1h",
        });
        self.world.create(declarest("SyncPolicy", "attack", &spec)).await;
        http
    }

    async fn fetch_attack(&self) {
        let now = jiff::Timestamp::now().to_string();
        let patch = json!({"metadata": {"annotations": {RECEIVED_AT: now}}});
        self.world.patch::<ResourceRepository>("attack", patch).await;
    }

    async fn failures(&self, wanted: impl Fn(&str) -> bool) {
        let api = self.world.api::<SyncPolicy>();
        let look = || async {
            let status = api.get("attack").await.ok()?.status?;
            let failed = status.failed_resources;
            let all = !failed.is_empty() && failed.iter().all(|failed| wanted(&failed.message));
            all.then_some(())
        };
        self.world.eventually("every resource of the attack fails with the cause", look).await;
    }
}

#[tokio::test]
async fn git_blobs_of_any_size() {
    let Some(crowded) = Crowded::start().await else { return };
    let git = GitRemote::new();
    // Git stores each in a few hundred KiB.
    git.write("big/text/resource.json", format!("\"{}\"", "x".repeat(200 << 20)));
    git.write("big/array/resource.json", format!("[{}0]", "0,".repeat(50 << 20)));
    git.commit("large");
    git.push();
    let _git = crowded.attack(&git).await;
    crowded.failures(|message| message.contains("more than the limit of 32 MiB")).await;
    crowded.goes_on(2).await;
}

#[tokio::test]
async fn commits_of_any_size() {
    let Some(crowded) = Crowded::start().await else { return };
    let git = GitRemote::new();
    git.write("big/one/resource.json", "{}");
    let parent = git.commit("one");
    git.push();
    let text = run_git(&git.bare(), &["cat-file", "commit", &parent]) + &"x".repeat(400 << 20);
    let large = piped(&git.bare(), &["hash-object", "-t", "commit", "-w", "--stdin"], text.as_bytes());
    let tree = format!("{parent}^{{tree}}");
    let above = run_git(&git.bare(), &["commit-tree", &tree, "-p", &large, "-m", "small"]);
    run_git(&git.bare(), &["update-ref", &format!("refs/heads/{BRANCH}"), &above]);
    let http = crowded.attack(&git).await;
    let api = crowded.world.api::<ResourceRepository>();
    let look = || async {
        let ready = ready(&api.get("attack").await.ok()?.status?.conditions);
        let cause = format!("commit {large} in the history of the branch has ");
        (ready.reason == "FetchFailed" && ready.message.contains(&cause)).then_some(())
    };
    crowded.world.eventually("the repository names the commit", look).await;
    git.write("big/one/resource.json", r#"{"id": "one"}"#);
    git.commit("repaired");
    git.force_push();
    crowded.fetch_attack().await;
    crowded
        .world
        .eventually("the repaired branch is applied", || async { crowded.server.get("/big/one") })
        .await;
    drop(http);
    crowded.goes_on(2).await;
}

/// A few trees that contain each other many times.
#[tokio::test]
async fn directories_of_any_number() {
    let Some(crowded) = Crowded::start().await else { return };
    let git = GitRemote::new();
    git.write("big/one/resource.json", r#"{"id": "one"}"#);
    let parent = git.commit("one");
    git.push();
    let http = crowded.attack(&git).await;
    crowded
        .world
        .eventually("the first commit is applied", || async { crowded.server.get("/big/one") })
        .await;
    let blob = piped(&git.bare(), &["hash-object", "-w", "--stdin"], b"{}");
    let mut tree = String::new();
    for level in 0..9 {
        let names: &[&str] =
            if level == 8 { &["big"] } else { &["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"] };
        let mut entries = format!("100644 blob {blob}\tresource.json\n");
        for name in names.iter().filter(|_| level > 0) {
            let _ = writeln!(entries, "040000 tree {tree}\t{name}");
        }
        tree = piped(&git.bare(), &["mktree"], entries.as_bytes());
    }
    let bomb = run_git(&git.bare(), &["commit-tree", &tree, "-p", &parent, "-m", "many"]);
    run_git(&git.bare(), &["update-ref", &format!("refs/heads/{BRANCH}"), &bomb]);
    crowded.fetch_attack().await;
    let api = crowded.world.api::<SyncPolicy>();
    let look = || async {
        let ready = ready(&api.get("attack").await.ok()?.status?.conditions);
        let cause = "\"/big\" has too many directories: more than 500000 of them";
        (ready.status == "False" && ready.message.contains(cause)).then_some(())
    };
    crowded.world.eventually("the policy names the cause", look).await;
    assert!(crowded.server.get("/big/one").is_some(), "nothing is pruned");
    git.write("big/one/resource.json", r#"{"id": "one", "size": 2}"#);
    let repaired = git.commit("repaired");
    git.force_push();
    crowded.fetch_attack().await;
    let applied = || async {
        let status = api.get("attack").await.ok()?.status?;
        (status.last_applied_repo_revision.as_ref() == Some(&repaired)).then_some(())
    };
    crowded.world.eventually("the repaired branch is applied", applied).await;
    crowded.goes_on(2).await;
    drop(http);
}

/// Runs `git` with this input, and returns its trimmed output.
fn piped(directory: &Path, arguments: &[&str], input: &[u8]) -> String {
    let mut command = git_command(directory);
    let mut git = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    git.stdin.take().unwrap().write_all(input).unwrap();
    String::from_utf8(git.wait_with_output().unwrap().stdout).unwrap().trim().to_owned()
}

#[tokio::test]
async fn payloads_with_many_values() {
    let Some(crowded) = Crowded::start().await else { return };
    let git = GitRemote::new();
    for index in 0..2 {
        git.write(&format!("big/array{index}/resource.json"), format!("[{}0]", "0,".repeat(15 << 20)));
        git.write(
            &format!("big/objects{index}/resource.json"),
            format!("[{}0]", "{\"a\":0},".repeat(3 << 20)),
        );
        git.write(&format!("big/blocks{index}/resource.yaml"), "- a: 0\n".repeat(4 << 20));
    }
    git.commit("many values");
    git.push();
    let _git = crowded.attack(&git).await;
    crowded.failures(|message| message.contains("raise the memory limit of the operator")).await;
    crowded.goes_on(2).await;
}

/// Each page is small, and the entries of all of them are kept.
#[tokio::test]
async fn a_list_with_many_small_pages() {
    let Some(crowded) = Crowded::start().await else { return };
    let padding = "x".repeat(900);
    let page = move |Query(query): Query<HashMap<String, usize>>| async move {
        let page = query.get("page").copied().unwrap_or(1);
        let entry = |index| json!({"id": format!("{page}-{index}"), "name": format!("n{page}-{index}"), "x": padding});
        let link = format!("</big?page={}>; rel=\"next\"", page + 1);
        ([(LINK, link)], Json((0..60).map(entry).collect::<Vec<_>>()))
    };
    let absent = || async { (StatusCode::NOT_FOUND, Json(json!({}))) };
    let router = Router::new().route("/big", get(page)).route("/big/{name}", get(absent));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    crowded.world.create(declarest("ManagedServer", "lists", &json!({"http": {"baseURL": url}}))).await;
    let git = GitRemote::new();
    git.write("big/_/metadata.yaml", "resource: {id: /id, alias: /name}\n");
    git.write("big/one/resource.json", r#"{"name": "one"}"#);
    git.commit("one");
    git.push();
    let _git = crowded.attack_on("lists", &git).await;
    crowded.failures(|message| message.contains("raise the memory limit of the operator")).await;
    crowded.goes_on(2).await;
    serving.abort();
}

/// Payloads that are allowed, but not all at once.
#[tokio::test]
async fn many_large_payloads_are_applied_one_after_the_other() {
    let Some(crowded) = Crowded::start().await else { return };
    let git = GitRemote::new();
    for index in 0..24 {
        let text = "x".repeat(3 << 20);
        git.write(
            &format!("big/text{index}/resource.json"),
            format!(r#"{{"id": "text{index}", "t": "{text}"}}"#),
        );
    }
    git.commit("large");
    git.push();
    let _git = crowded.attack(&git).await;
    let applied = || async {
        let all = (0..24).all(|index| crowded.server.get(&format!("/big/text{index}")).is_some());
        all.then_some(())
    };
    crowded.world.eventually("all large payloads are applied", applied).await;
    crowded.goes_on(2).await;
}

#[tokio::test]
async fn key_derivations_with_much_memory() {
    let Some(crowded) = Crowded::start().await else { return };
    let seed = json!({
        "version": 1, "kdf_time": 1, "kdf_memory": 4 << 20, "kdf_threads": 1, "salt": "AAECAwQFBgcICQoLDA0ODw==",
        "nonce": "AAECAwQFBgcICQoL", "ciphertext": "PCClfqaXp2/+Y63wk4gIHfD55V2cFzYSX13K4X85YcFyZ8GOy+MougeXHJ+78wUJ",
    });
    crowded.world.create_secret("store", &[("passphrase", "p"), ("seed", &seed.to_string())]).await;
    let reference = |key: &str| json!({"name": "store", "key": key});
    for index in 0..4 {
        let file = json!({
            "path": "store.json", "encryption": {"passphraseRef": reference("passphrase")},
            "seedRef": reference("seed"),
        });
        let store = declarest("SecretStore", &format!("store{index}"), &json!({"file": file}));
        crowded.world.create(store).await;
    }
    let api = crowded.world.api::<SecretStore>();
    for index in 0..4 {
        let look = || async {
            let ready = ready(&api.get(&format!("store{index}")).await.ok()?.status?.conditions);
            ready.message.contains("asks for 4096 MiB of memory, more than 128 MiB").then_some(())
        };
        crowded.world.eventually("the store names the memory", look).await;
    }
    crowded.goes_on(2).await;
}

#[tokio::test]
async fn artifacts_with_many_values() {
    let Some(crowded) = Crowded::start().await else { return };
    let zeros = format!(r#"{{"openapi": "3.0.3", "paths": {{}}, "x": [{}0]}}"#, "0,".repeat(15 << 20));
    let bundle = archive(24);
    let router = Router::new()
        .route("/openapi.json", get(move || async move { zeros.clone() }))
        .route("/bundle.tar.gz", get(move || async move { bundle.clone() }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    for index in 0..2 {
        let of_openapi = json!({"http": {"baseURL": url}, "openapi": {"url": format!("{url}/openapi.json")}});
        let of_bundle =
            json!({"http": {"baseURL": url}, "metadata": {"url": format!("{url}/bundle.tar.gz")}});
        for (name, spec) in [("openapi", of_openapi), ("bundle", of_bundle)] {
            crowded.world.create(declarest("ManagedServer", &format!("{name}{index}"), &spec)).await;
        }
    }
    let api = crowded.world.api::<ManagedServer>();
    for (name, cause) in
        [("openapi", "raise the memory limit of the operator"), ("bundle", "more than the limit of")]
    {
        for index in 0..2 {
            let look = || async {
                let ready = ready(&api.get(&format!("{name}{index}")).await.ok()?.status?.conditions);
                (ready.reason == "ArtifactUnavailable" && ready.message.contains(cause)).then_some(())
            };
            crowded.world.eventually(&format!("{name}{index} names the cause"), look).await;
        }
    }
    crowded.goes_on(2).await;
    serving.abort();
}

/// A bundle with this number of documents of almost 1 MiB.
fn archive(documents: usize) -> Vec<u8> {
    let manifest = "apiVersion: declarest.io/v1alpha1\nkind: MetadataBundle\nname: large\nversion: 1.0.0\n\
                    description: Large.\ndeclarest: {metadataRoot: metadata}\n";
    let mut document = "resource: {id: /id}\n".to_owned();
    while document.len() < 1_000_000 {
        let _ = writeln!(document, "# {}", "x".repeat(1000));
    }
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut add = |file: &str, content: &str| {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, Path::new(file), content.as_bytes()).unwrap();
    };
    add("bundle.yaml", manifest);
    for index in 0..documents {
        add(&format!("metadata/tills{index}/_/metadata.yaml"), &document);
    }
    let mut packed = archive.into_inner().unwrap();
    packed.flush().unwrap();
    packed.finish().unwrap()
}
