//! A file of secrets that many processes write at once, and that some of them are killed over.
//!
//! The processes are this test binary, started again for one test that does nothing in the usual run.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use declarest_core::secrets::file::{FileStore, FileStoreSettings, Kdf, KeyMaterial};
use declarest_core::secrets::{Secret, SecretKey};

const PROCESSES: usize = 8;
const WRITES: usize = 25;
const KILLS: usize = 24;

/// The variable that states what a process writes where: `<file>|<name>|<count>`.
const TASK: &str = "DECLAREST_TEST_SECRET_WRITER";

fn store(file: &Path) -> FileStore {
    let key = KeyMaterial::key(&Secret::from("0123456789abcdef0123456789abcdef".to_owned())).unwrap();
    FileStore::new(FileStoreSettings { beneath: None, path: file.to_owned(), key, kdf: Kdf::default() })
}

fn key(name: &str, number: usize) -> SecretKey {
    SecretKey::parse(&format!("{name}:{number:04}")).unwrap()
}

/// Long enough for a half-written file to be seen.
fn value(name: &str, number: usize) -> String {
    format!("{name}-{number}-").repeat(40)
}

/// A larger file could not be read.
#[tokio::test]
async fn a_file_that_would_be_too_large_is_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory.path().join("secrets.json"));
    store.set(&key("small", 1), &Secret::from("value".to_owned())).await.unwrap();
    let refused = store.set(&key("large", 1), &Secret::from("x".repeat(30 << 20))).await.unwrap_err();
    assert!(refused.to_string().contains("larger than 32 MiB"), "{refused}");
    assert_eq!(store.list().await.unwrap(), [key("small", 1)]);
}

fn spawn(file: &Path, name: &str, count: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer", "--nocapture"])
        .env(TASK, format!("{}|{name}|{count}", file.display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The part of a process that writes: it prints each completed write.
#[tokio::test]
async fn writer() {
    let Ok(task) = std::env::var(TASK) else { return };
    let [file, name, count] = task.split('|').collect::<Vec<_>>().try_into().unwrap();
    let store = store(Path::new(file));
    for number in 0..count.parse().unwrap() {
        store.set(&key(name, number), &Secret::from(value(name, number))).await.unwrap();
        println!("\nwritten {number}");
    }
}

async fn assert_written(store: &FileStore, name: &str, count: usize) {
    for number in 0..count {
        let found = store.get(&key(name, number)).await.unwrap();
        assert_eq!(found.expose(), value(name, number));
    }
}

#[tokio::test]
async fn processes_that_write_at_once_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("secrets.json");
    let names: Vec<String> = (0..PROCESSES).map(|number| format!("process{number}")).collect();
    let children: Vec<Child> = names.iter().map(|name| spawn(&file, name, WRITES)).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let store = store(&file);
    assert_eq!(store.list().await.unwrap().len(), PROCESSES * WRITES);
    for name in &names {
        assert_written(&store, name, WRITES).await;
    }
}

#[tokio::test]
async fn killed_processes_lose_nothing_that_was_done_and_leave_nothing_half_done() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("secrets.json");
    let store = store(&file);
    store.init().await.unwrap();
    for round in 0..KILLS {
        let name = format!("round{round}");
        let mut child = spawn(&file, &name, usize::MAX);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut written = lines.filter(|line| line.starts_with("written "));
        // The next write is under way when a process has printed the last one.
        let least = 1 + round % 3;
        assert_eq!(written.by_ref().take(least).count(), least);
        child.kill().unwrap();
        child.wait().unwrap();
        let done = least + written.count();
        assert_written(&store, &name, done).await;
        let keys = store.list().await.unwrap();
        let of_round = keys.iter().filter(|key| key.as_str().starts_with(&format!("{name}:"))).count();
        // The last may have been written and not printed.
        assert!((done..=done + 1).contains(&of_round), "{of_round} after {done} writes");
        assert_written(&store, &name, of_round).await;
    }
    // A process that was killed with the lock no longer has it.
    store.set(&key("after", 0), &Secret::from(value("after", 0))).await.unwrap();
    assert_written(&store, "after", 1).await;
}
