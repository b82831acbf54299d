//! What a sync must never touch: resources that are not ours, those that are declared under another path, and those
//! that may exist although they were not seen. Every test compares what the server holds with what it must hold.

mod addresses;
mod creation;
mod identity;
mod lists;
mod products;
mod renames;
mod revisions;
mod shapes;
mod updates;

use declarest_operator::crd::sync_policy::RunOutcome;
use declarest_operator::crd::{SyncPolicy, SyncPolicyStatus};
use serde_json::{Value, json};

use crate::support::api_server::ApiServer;
use crate::support::git_remote::GitRemote;
use crate::support::world::{World, condition};

/// A repository, a server, and an operator with a policy for both.
pub struct Scene {
    pub world: World,
    pub git: GitRemote,
    pub server: ApiServer,
}

impl Scene {
    /// A scene whose first run has ended, and how it ended.
    pub async fn start(server: ApiServer, files: &[(&str, &str)]) -> (Self, SyncPolicyStatus) {
        let git = GitRemote::new();
        for (path, content) in files {
            git.write(path, content);
        }
        git.commit("first");
        git.push();
        let world = World::start().await;
        let scene = Self { world, git, server };
        scene.world.create_repository(&scene.git.file_url(), Value::Null).await;
        scene.world.create_server(json!({"baseURL": scene.server.url()})).await;
        scene.world.create_policy(json!({})).await;
        let status = scene.attempted(&scene.git.head()).await;
        (scene, status)
    }

    /// [`Scene::start`], where the first run succeeds.
    pub async fn synced(server: ApiServer, files: &[(&str, &str)]) -> Self {
        let (scene, status) = Self::start(server, files).await;
        assert!(succeeded(&status), "the first run: {}", outcome(&status));
        scene
    }

    /// Commits the work tree, pushes it, and waits for the run that it causes.
    pub async fn push(&self) -> SyncPolicyStatus {
        self.git.commit("next");
        self.push_commits().await
    }

    /// Pushes what was committed, and waits for the run that it causes.
    pub async fn push_commits(&self) -> SyncPolicyStatus {
        self.git.push();
        self.world.notify().await;
        self.attempted(&self.git.head()).await
    }

    async fn attempted(&self, revision: &str) -> SyncPolicyStatus {
        let what = format!("the run at {revision} has ended");
        let attempted = |status: &SyncPolicyStatus| {
            has_ended(status) && status.last_attempted_repo_revision.as_deref() == Some(revision)
        };
        self.world.policy(&what, attempted).await
    }

    /// Asks for a run over the whole scope, and waits for its end.
    pub async fn full_run(&self) -> SyncPolicyStatus {
        let now = jiff::Timestamp::now().to_string();
        let patch = json!({"metadata": {"annotations": {"declarest.io/sync-requested-at": now}}});
        self.world.patch::<SyncPolicy>("policy", patch).await;
        let handled = |status: &SyncPolicyStatus| {
            has_ended(status) && status.last_handled_sync_request.as_deref() == Some(now.as_str())
        };
        self.world.policy("the requested run has ended", handled).await
    }

    /// Full runs until one succeeds, at most `runs`.
    pub async fn converges(&self, runs: usize) -> SyncPolicyStatus {
        let mut last = None;
        for _ in 0..runs {
            let status = self.full_run().await;
            if succeeded(&status) {
                return status;
            }
            last = Some(outcome(&status));
        }
        panic!("{runs} full runs did not succeed: {}", last.unwrap_or_default());
    }

    /// Asserts that no request was sent that could delete something.
    #[track_caller]
    pub fn deletes_nothing(&self) {
        assert_eq!(self.server.count("DELETE"), 0, "{:?}", self.server.writes());
    }

    /// Asserts that the server holds exactly these paths.
    #[track_caller]
    pub fn holds(&self, paths: &[&str]) {
        assert_eq!(self.server.paths(), paths, "{:?}", self.server.writes());
    }
}

fn has_ended(status: &SyncPolicyStatus) -> bool {
    let reason = condition(&status.conditions, "Reconciling").reason;
    !reason.is_empty() && reason != "Reconciling" && status.last_attempt_time.is_some()
}

pub fn succeeded(status: &SyncPolicyStatus) -> bool {
    status.last_run_outcome == Some(RunOutcome::Succeeded)
}

/// The outcome of the last run and what failed in it.
pub fn outcome(status: &SyncPolicyStatus) -> String {
    let failed = status.failed_resources.iter();
    let failed: Vec<String> = failed.map(|failed| format!("{}: {}", failed.path, failed.message)).collect();
    format!("{:?} {failed:?}", status.last_run_outcome)
}

/// Whether the run did not succeed and says so of `path`.
pub fn reports(status: &SyncPolicyStatus, path: &str) -> bool {
    !succeeded(status) && status.failed_resources.iter().any(|failed| failed.path == path)
}

#[track_caller]
pub fn assert_reports(status: &SyncPolicyStatus, path: &str) {
    assert!(reports(status, path), "{path} is not reported: {}", outcome(status));
}
