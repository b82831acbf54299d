//! A disk without space below the mirrors: what was synced stays, drift is still corrected, and the next fetch succeeds
//! when there is space again.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, RestServer};
use crate::support::root::skip;
use crate::support::world::World;

/// A tmpfs of 2 MiB.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Returns `None` with a message if this process may not mount.
    fn mount(directory: &Path) -> Option<Self> {
        fs::create_dir_all(directory).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(directory).stderr(Stdio::null());
        if !mount.status().is_ok_and(|status| status.success()) {
            return skip("file systems cannot be mounted here; run as root");
        }
        Some(Self(directory.to_owned()))
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }

    fn fill(&self) {
        let mut file = fs::File::create(self.filler()).unwrap();
        while file.write_all(&[0; 1024]).is_ok() {}
    }

    fn empty(&self) {
        fs::remove_file(self.filler()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The operator may still have files open.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_delays_a_push_and_loses_nothing() {
    let mut world = World::cold_anywhere(&[]).await;
    let Some(disk) = SmallDisk::mount(&world.state().join("repos")) else { return };
    let config = Config { collections: vec!["/items".to_owned()], ..Config::default() };
    let (git, server) = (GitRemote::new(), RestServer::start(config).unwrap());
    git.write("items/i1/resource.json", r#"{"id": "i1"}"#);
    git.commit("one");
    git.push();
    world.launch().await;
    world.create_repository(&git.file_url(), json!(null)).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({})).await;
    world.applied(&git.head()).await;

    disk.fill();
    // Letters that Git cannot compress to a few bytes.
    let letters: String = std::iter::repeat_with(fastrand::alphanumeric).take(100_000).collect();
    git.write("items/i2/resource.json", json!({"id": "i2", "letters": letters}).to_string());
    git.remove("items/i1/resource.json");
    let pushed = git.commit("two");
    git.push();
    world.notify().await;
    let message = world.repository_reason("FetchFailed").await;
    assert!(message.contains("No space left on device"), "{message}");
    assert!(server.delete_by_hand("/items/i1"));
    world.request_sync().await;
    world.finished("ManualRequest").await;
    assert!(server.get("/items/i1").is_some(), "drift is corrected from the mirror");

    disk.empty();
    world.notify().await;
    world.applied(&pushed).await;
    assert!(server.get("/items/i2").is_some() && server.get("/items/i1").is_none());
}
