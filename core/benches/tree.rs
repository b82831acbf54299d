//! How long it takes to open, list and read a tree of many resources, and how much memory; and whether finding out
//! what a commit of ten files affects depends on the size of the tree. Prints tables; run by
//! `make bench-core`. The first argument is the number of resources, 100,000 if there is none.
//!
//! Every figure comes from a process of its own, so that none has another's caches or memory.

#![allow(clippy::print_stdout, reason = "the tables are the product")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark that cannot go on has no result")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use declarest_core::path::LogicalPath;
use declarest_core::repository::{
    Changes, DirTree, Mirror, Revision, Tree, classify, read_payload, resources,
};
use git2::{Buf, Index, IndexEntry, IndexTime, Oid, Repository, Signature, Time};

/// Members of one collection, and collections of one region. Reading a directory costs what it holds, so only
/// trees with directories of one size show what the number of resources costs.
const MEMBERS: usize = 100;

/// Files of the commit that is classified: the same in all trees, each in a collection of its own.
const CHANGED: usize = 10;

/// How often a classification is measured; the median counts.
const ROUNDS: usize = 31;

/// What the mirrors belong to.
const BINDING: &str = "benchmark";

fn main() {
    // Cargo adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|text| text != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => compare(100_000),
        [count] => compare(count.parse().unwrap()),
        ["list-directory", directory] => list(|| Box::new(DirTree::open(Path::new(directory)).unwrap())),
        ["list-git", directory, commit] => list(|| {
            let mirror = Mirror::open(Path::new(directory), BINDING).unwrap();
            Box::new(mirror.tree(&commit.parse().unwrap()).unwrap())
        }),
        ["classify", directory, base, target] => {
            measure_classification(Path::new(directory), &base.parse().unwrap(), &target.parse().unwrap());
        }
        _ => panic!("unknown arguments: {arguments:?}"),
    }
}

/// Makes the trees and lets other processes of this program measure them.
fn compare(count: usize) {
    let few = (count / 100).max(CHANGED * MEMBERS);
    assert!(few <= count, "at least {few} resources are needed");
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (directory, large, small) = (at("directory"), at("large"), at("small"));
    write_directory(Path::new(&directory), count);
    let (base, target) = commits(Path::new(&large), count);
    let (few_base, few_target) = commits(Path::new(&small), few);

    println!(
        "{:>10} {:>10} {:>12} {:>12} {:>12} {:>10}",
        "resources", "tree", "open", "list all", "read all", "peak RSS"
    );
    listing(count, "directory", &["list-directory", &directory]);
    listing(count, "git", &["list-git", &large, &base]);

    println!("\n{:>10} {:>12} {:>12} {:>12}", "resources", "diff", "classify", "together");
    let of_few = classification(few, &["classify", &small, &few_base, &few_target]);
    let of_many = classification(count, &["classify", &large, &base, &target]);
    let ratios = of_few.iter().zip(&of_many).map(|(few, many)| format!("{:>12.2}", many / few));
    println!("{:>10} {}", "ratio", ratios.collect::<Vec<_>>().join(" "));
}

fn listing(count: usize, tree: &str, arguments: &[&str]) {
    let [open, list, read, peak] = measured(arguments)[..] else {
        panic!("{arguments:?} gives no four numbers")
    };
    println!("{count:>10} {tree:>10} {:>9.3} ms {list:>10.3} s {read:>10.3} s {peak:>6} MiB", open * 1e3);
}

/// Seconds for the difference, the classification, and both.
fn classification(count: usize, arguments: &[&str]) -> [f64; 3] {
    let [diff, classify] = measured(arguments)[..] else { panic!("{arguments:?} gives no two numbers") };
    let all = [diff, classify, diff + classify];
    println!("{count:>10} {}", all.map(|seconds| format!("{:>9.3} ms", seconds * 1e3)).join(" "));
    all
}

/// The numbers that this program prints when run with `arguments`.
fn measured(arguments: &[&str]) -> Vec<f64> {
    let output = Command::new(std::env::current_exe().unwrap()).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

fn list(open: impl FnOnce() -> Box<dyn Tree>) {
    let started = Instant::now();
    let tree = open();
    let opened = started.elapsed();
    let started = Instant::now();
    let listing = resources(tree.as_ref(), &LogicalPath::root(), true).unwrap();
    let listed = started.elapsed();
    assert!(!listing.resources.is_empty() && listing.broken.is_empty());
    let started = Instant::now();
    for resource in &listing.resources {
        read_payload(tree.as_ref(), resource).unwrap();
    }
    let read = started.elapsed();
    println!("{} {} {} {}", opened.as_secs_f64(), listed.as_secs_f64(), read.as_secs_f64(), peak_memory());
}

/// Trees are opened again in every round, as for every sync.
fn measure_classification(directory: &Path, base: &Revision, target: &Revision) {
    let mirror = Mirror::open(directory, BINDING).unwrap();
    let (mut diffs, mut classifications) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let changes = mirror.diff(base, target).unwrap();
        diffs.push(started.elapsed());
        let started = Instant::now();
        let (base, target) = (mirror.tree(base).unwrap(), mirror.tree(target).unwrap());
        let affected = classify(&changes, &base, &target, &LogicalPath::root()).unwrap();
        classifications.push(started.elapsed());
        let Changes::Targets { apply, .. } = affected else { panic!("payloads ask for no full sync") };
        assert_eq!(apply.len(), CHANGED);
    }
    println!("{} {}", median(diffs), median(classifications));
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64()
}

/// The peak memory of this process in MiB; 0 if the system does not report it.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    peak.map_or(0, |kibibytes| kibibytes.parse::<u64>().unwrap() / 1024)
}

fn file(number: usize) -> String {
    let (region, collection) = (number / MEMBERS / MEMBERS, number / MEMBERS);
    format!("r{region:02}/c{collection:04}/i{number:06}/resource.json")
}

fn content(number: usize, size: usize) -> String {
    format!("{{\n  \"enabled\": true,\n  \"id\": \"i{number}\",\n  \"size\": {size}\n}}")
}

fn write_directory(root: &Path, count: usize) {
    for number in 0..count {
        let place = root.join(file(number));
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, content(number, 1)).unwrap();
    }
}

/// Makes a mirror in `directory` with a commit of `count` resources, and one after it that changes ten.
fn commits(directory: &Path, count: usize) -> (String, String) {
    Mirror::open(directory, BINDING).unwrap();
    let repository = Repository::open_bare(directory.join("git")).unwrap();
    let odb = repository.odb().unwrap();
    // Objects become one pack in the end, as after a fetch.
    let memory = odb.add_new_mempack_backend(1000).unwrap();
    let mut index = Index::new().unwrap();
    (0..count).for_each(|number| add(&repository, &mut index, number, 1));
    let base = commit(&repository, &mut index, None);
    (0..CHANGED).for_each(|change| add(&repository, &mut index, change * MEMBERS, 2));
    let target = commit(&repository, &mut index, Some(base));
    let mut pack = Buf::new();
    memory.dump(&repository, &mut pack).unwrap();
    let mut writer = odb.packwriter().unwrap();
    std::io::Write::write_all(&mut writer, &pack).unwrap();
    writer.commit().unwrap();
    (base.to_string(), target.to_string())
}

fn add(repository: &Repository, index: &mut Index, number: usize, size: usize) {
    let id = repository.blob(content(number, size).as_bytes()).unwrap();
    let entry = IndexEntry {
        ctime: IndexTime::new(0, 0),
        mtime: IndexTime::new(0, 0),
        dev: 0,
        ino: 0,
        mode: 0o100_644,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path: file(number).into_bytes(),
    };
    index.add(&entry).unwrap();
}

fn commit(repository: &Repository, index: &mut Index, parent: Option<Oid>) -> Oid {
    let tree = repository.find_tree(index.write_tree_to(repository).unwrap()).unwrap();
    let who = Signature::new("a", "a@example.org", &Time::new(1_000_000_000, 0)).unwrap();
    let parent = parent.map(|id| repository.find_commit(id).unwrap());
    repository.commit(None, &who, &who, "files", &tree, &parent.iter().collect::<Vec<_>>()).unwrap()
}
