//! Damage to the mirror of a repository: the operator discards it and goes on, and deletes nothing.

use std::fs;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use declarest_operator::crd::sync_policy::RunOutcome;
use declarest_operator::crd::{SyncPolicy, SyncPolicyStatus};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, RestServer};
use crate::support::world::{World, is_true, ready};

const ITEMS: usize = 200;

struct Scene {
    world: World,
    git: GitRemote,
    server: RestServer,
}

impl Scene {
    /// A synced world whose mirror has a pack of many pages.
    async fn start() -> Self {
        let git = GitRemote::new();
        for index in 0..ITEMS {
            // Texts that compress badly, so that the pack is large.
            let text: String = (0..400).map(|_| fastrand::alphanumeric()).collect();
            let item = json!({"id": format!("i{index}"), "text": text}).to_string();
            git.write(&format!("items/i{index}/resource.json"), item);
        }
        git.commit("items");
        git.push();
        let config = Config { collections: vec!["/items".to_owned()], ..Config::default() };
        let server = RestServer::start(config).unwrap();
        let world = World::start().await;
        world.create_repository(&git.file_url(), Value::Null).await;
        world.create_server(json!({"baseURL": server.url()})).await;
        world.create_policy(json!({})).await;
        world.applied(&git.head()).await;
        Self { world, git, server }
    }

    fn pack(&self) -> PathBuf {
        let packs = fs::read_dir(self.world.mirror("repo").join("git/objects/pack")).unwrap();
        let mut packs = packs.map(|entry| entry.unwrap().path());
        packs.find(|path| path.extension().is_some_and(|extension| extension == "pack")).unwrap()
    }

    /// Damages the mirror, and waits until the last check of its files is no longer valid (100 ms). A process that
    /// reads a truncated file before that ends with SIGBUS.
    async fn harm(&self, harm: Harm) {
        match harm {
            Harm::Truncate => {
                let pack = self.pack();
                writable(&pack).set_len(fs::metadata(&pack).unwrap().len() / 3).unwrap();
            }
            Harm::Overwrite => {
                let pack = self.pack();
                let third = fs::metadata(&pack).unwrap().len() / 3;
                let noise = vec![0x55; usize::try_from(third).unwrap()];
                writable(&pack).write_all_at(&noise, third).unwrap();
            }
            Harm::Remove => fs::remove_dir_all(self.world.mirror("repo").join("git")).unwrap(),
        }
        tokio::time::sleep(Duration::from_millis(150)).await;
    }

    /// Asks for a full run and waits until all resources are as declared. Runs that fail before are fine.
    async fn full_run_succeeds(&self) {
        let before = self.world.policy("a status", |_| true).await.last_handled_sync_request;
        self.world.request_sync().await;
        let succeeded = |status: &SyncPolicyStatus| {
            status.last_handled_sync_request != before
                && status.last_run_outcome == Some(RunOutcome::Succeeded)
                && !is_true(&status.conditions, "Reconciling")
                && is_true(&status.conditions, "Ready")
        };
        self.world.policy("a full run succeeds", succeeded).await;
    }

    fn assert_nothing_deleted(&self) {
        let writes = self.server.writes();
        let deleted: Vec<_> = writes.iter().filter(|request| request.method == "DELETE").collect();
        assert!(deleted.is_empty(), "{deleted:?}");
        assert!(self.server.resources().len() >= ITEMS);
    }
}

/// Packs are read-only files.
fn writable(file: &Path) -> fs::File {
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    fs::File::options().write(true).open(file).unwrap()
}

#[derive(Clone, Copy, Debug)]
enum Harm {
    Truncate,
    Overwrite,
    Remove,
}

#[rstest::rstest]
#[case(Harm::Truncate)]
#[case(Harm::Overwrite)]
#[case(Harm::Remove)]
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_mirror_is_fetched_again_without_a_restart(#[case] harm: Harm) {
    let scene = Scene::start().await;
    let process = scene.world.process("stat");
    scene.harm(harm).await;
    scene.git.write("items/new/resource.json", r#"{"id": "new"}"#);
    let revision = scene.git.commit("more");
    scene.git.push();
    scene.world.notify().await;
    scene.world.fetched(&revision).await;
    scene.world.applied(&revision).await;
    scene.full_run_succeeds().await;
    scene.assert_nothing_deleted();
    let pid = |stat: &str| stat.split(' ').next().unwrap_or_default().to_owned();
    assert_eq!(pid(&process), pid(&scene.world.process("stat")), "the process went on");
}

#[rstest::rstest]
#[case(Harm::Truncate)]
#[case(Harm::Overwrite)]
#[case(Harm::Remove)]
#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_meets_damage_has_the_mirror_fetched_again(#[case] harm: Harm) {
    let mut scene = Scene::start().await;
    if matches!(harm, Harm::Overwrite) {
        // After a restart nothing shows but what cannot be read.
        scene.world.kill();
        scene.harm(harm).await;
        scene.world.launch().await;
    } else {
        scene.harm(harm).await;
    }
    scene.server.put_by_hand("/items/i7", json!({"id": "i7", "text": "changed by hand"}));
    scene.full_run_succeeds().await;
    assert_ne!(scene.server.get("/items/i7").unwrap()["text"], "changed by hand");
    scene.assert_nothing_deleted();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_whose_mirror_is_damaged_is_not_ready() {
    let scene = Scene::start().await;
    let (bare, away) = (scene.git.bare(), scene.git.root().join("away"));
    fs::rename(&bare, &away).unwrap();
    scene.harm(Harm::Remove).await;
    scene.world.request_sync().await;
    scene.world.repository_reason("FetchFailed").await;
    fs::rename(&away, &bare).unwrap();
    scene.world.fetched(&scene.git.head()).await;
    scene.full_run_succeeds().await;
    scene.assert_nothing_deleted();
}

/// A world whose policy has applied one resource.
async fn synced() -> (World, GitRemote, RestServer) {
    let git = GitRemote::new();
    git.write("items/i1/resource.json", r#"{"id": "i1"}"#);
    git.commit("one");
    git.push();
    let config = Config { collections: vec!["/items".to_owned()], ..Config::default() };
    let server = RestServer::start(config).unwrap();
    let world = World::start().await;
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({})).await;
    world.applied(&git.head()).await;
    (world, git, server)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_waits_for_a_mirror_that_is_fetched_again() {
    let (mut world, git, _server) = synced().await;
    // The operator starts with empty directories, and Git is not available.
    world.kill();
    fs::remove_dir_all(world.state().join("repos")).unwrap();
    let away = git.root().join("away.git");
    fs::rename(git.bare(), &away).unwrap();
    world.launch().await;
    world.repository_reason("FetchFailed").await;
    world.request_sync().await;
    // It does not pretend to be ready: it corrects no drift.
    let is_waiting = |conditions: &[_]| ready(conditions).reason == "DependencyNotReady";
    let waiting = world.policy("the policy waits", |status| is_waiting(&status.conditions)).await;
    let message = ready(&waiting.conditions).message;
    assert!(message.contains("ResourceRepository \"repo\" is not ready (FetchFailed: "), "{message}");

    // The same revision comes back.
    fs::rename(&away, git.bare()).unwrap();
    world.notify().await;
    world.fetched(&git.head()).await;
    // Before the retry after a failed dependency, which comes after 30 s.
    world.patience = Duration::from_secs(25);
    let status = world.finished("ManualRequest").await;
    assert!(is_true(&status.conditions, "Ready"));
    assert!(!world.log().contains("RepositoryUnavailable"), "{}", world.log_tail());
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_corrected_after_a_restart_without_git() {
    let (mut world, git, server) = synced().await;
    world.kill();
    fs::rename(git.bare(), git.root().join("away.git")).unwrap();
    world.launch().await;
    world.notify().await;
    world.repository_reason("FetchFailed").await;

    // The mirror on the disk has the revision.
    assert!(server.delete_by_hand("/items/i1"));
    world.request_sync().await;
    world.finished("ManualRequest").await;
    assert!(server.get("/items/i1").is_some());
}

/// Returns whether the policy with this uid keeps revisions in the mirror.
fn has_pins(world: &World, uid: &str) -> bool {
    let mirror = git2::Repository::open(world.mirror("repo").join("git")).unwrap();
    mirror.references_glob(&format!("refs/declarest/pins/{uid}/*")).unwrap().count() > 0
}

#[tokio::test]
async fn a_policy_that_was_deleted_while_the_operator_was_down_keeps_no_revisions() {
    let mut scene = Scene::start().await;
    let world = &mut scene.world;
    let uid = world.api::<SyncPolicy>().get("policy").await.unwrap().metadata.uid.unwrap();
    assert!(has_pins(world, &uid));
    world.kill();
    // In standalone mode, the API ends with the operator, and its objects are files. The manifest creates a new policy.
    let stored = world.state().join("api/syncpolicies").join(&world.namespace).join("policy.json");
    if stored.exists() {
        fs::remove_file(stored).unwrap();
    } else {
        world.api::<SyncPolicy>().delete("policy", &DeleteParams::default()).await.unwrap();
    }
    world.launch().await;
    world.eventually("its pins are removed", || async { (!has_pins(world, &uid)).then_some(()) }).await;
}
