//! Histories and servers from seeds, in which a policy may delete only what its own revisions declared on this very
//! server. The situations of `core/tests/chaos` are the same, one floor below.

#[path = "../../../../core/tests/chaos/situations/draw.rs"]
#[allow(dead_code, reason = "the situations of core use the rest")]
mod draw;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;

use declarest_operator::crd::{ManagedServer, SyncPolicy};
use futures::FutureExt as _;
use futures::future::{LocalBoxFuture, join_all};
use rstest::rstest;
use serde_json::{Value, json};

use self::draw::Draw;
use super::table::{Row, Tally, size};
use crate::safety::{Scene, outcome, succeeded};
use crate::support::api_server::{ApiServer, Ids};
use crate::support::git_remote::git;
use crate::support::world::declarest;

const SEEDS: u64 = 2;
/// Operators at a time.
const AT_ONCE: usize = 4;

/// Plays what a seed made of a situation. A violation is a panic.
type Play = fn(Draw) -> LocalBoxFuture<'static, Tally>;

#[rstest]
#[case::e5("E5: a directory that becomes a link", |draw| reshaped(draw).boxed_local())]
#[case::e6("E6: another server", |draw| another_server(draw).boxed_local())]
#[case::e7("E7: commits of a merged branch", |draw| merged(draw).boxed_local())]
#[tokio::test(flavor = "multi_thread")]
async fn only_what_was_attempted_here_is_deleted(#[case] name: &str, #[case] play: Play) {
    let (first, seeds) = (size("CHAOS_SEED", 0), size("CHAOS_SEEDS", SEEDS));
    let seeds: Vec<u64> = (first..first + seeds).collect();
    let mut row = Row::new(name);
    for seeds in seeds.chunks(AT_ONCE) {
        let plays = seeds.iter().map(|seed| AssertUnwindSafe(play(Draw::new(name, *seed))).catch_unwind());
        for (seed, played) in seeds.iter().zip(join_all(plays).await) {
            row.add(played.unwrap_or_else(|_| panic!("{name}, seed {seed}: see the panic above")));
        }
    }
    row.publish();
}

/// `name` as a resource of `collection`.
fn file(collection: &str, name: &str) -> (String, String) {
    (format!("{collection}/{name}/resource.json"), json!({"id": name}).to_string())
}

/// Runs over everything until one succeeds. Returns how many it took.
async fn converges(scene: &Scene) -> usize {
    const MOST: usize = 2;
    let mut last = String::new();
    for run in 1..=MOST {
        let status = scene.full_run().await;
        if succeeded(&status) {
            return run;
        }
        last = outcome(&status);
    }
    panic!("{MOST} full runs did not succeed: {last}");
}

async fn synced(server: ApiServer, files: &[(String, String)]) -> Scene {
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
    let (scene, _) = Scene::start(server, &files).await;
    converges(&scene).await;
    scene
}

/// Some resources that are made by hand.
fn strangers(draw: &mut Draw, server: &ApiServer, collection: &str) -> BTreeMap<String, Value> {
    let count = draw.number(1..4);
    let made = draw.names(count).into_iter().map(|name| {
        let stranger = draw.body(json!({"id": name, "owner": "by hand"}));
        (format!("/{collection}/{name}"), stranger)
    });
    let made: BTreeMap<String, Value> = made.collect();
    for (path, stranger) in &made {
        server.put(path, stranger.clone());
    }
    made
}

/// Fails unless `server` still has `strangers` as they were.
fn unharmed(server: &ApiServer, strangers: &BTreeMap<String, Value>) {
    for (path, stranger) in strangers {
        assert_eq!(server.get(path).as_ref(), Some(stranger), "{path}: {:?}", server.writes());
    }
}

fn tally(servers: &[&ApiServer], steps: usize, runs: usize) -> Tally {
    let requests = servers.iter().map(|server| server.log().len()).sum();
    Tally { requests, injected: steps, runs, duplicates: 0, lost_deletes: 0, peak: 0, budget: 0 }
}

/// E5. A collection, or a resource of it, becomes a symbolic link or a submodule. Later it is a directory again.
async fn reshaped(mut draw: Draw) -> Tally {
    let (shops, tills, items) = (draw.plural(), draw.plural(), draw.plural());
    let collections = [format!("/{shops}"), format!("/{shops}/*/{tills}"), format!("/{items}")];
    let server = ApiServer::rest(&collections.each_ref().map(String::as_str), Ids::Stated("id"));
    let strangers = strangers(&mut draw, &server, &shops);
    let count = draw.number(1..4);
    let names = draw.names(count);
    let mut files = vec![file(&items, &draw.name())];
    for name in &names {
        files.push(file(&shops, name));
        let count = draw.number(0..3);
        let below = format!("{shops}/{name}/{tills}");
        files.extend(draw.names(count).iter().map(|till| file(&below, till)));
    }
    let scene = synced(server, &files).await;
    let (before, tree) = (scene.server.all(), scene.git.work_tree());
    let directory = if draw.chance(50) { shops.clone() } else { format!("{shops}/{}", names[0]) };
    if draw.chance(50) {
        let commit = scene.git.head();
        git(&tree, &["rm", "-r", "--quiet", &directory]);
        git(&tree, &["update-index", "--add", "--cacheinfo", &format!("160000,{commit},{directory}")]);
        std::fs::create_dir_all(tree.join(&directory)).unwrap();
    } else {
        // To where it went, or to nothing.
        git(&tree, &["mv", &directory, "moved"]);
        let target = if draw.chance(50) { "moved" } else { "nowhere" };
        std::os::unix::fs::symlink(target, tree.join(&directory)).unwrap();
    }
    scene.push().await;
    scene.full_run().await;
    scene.deletes_nothing();
    assert!(before.iter().all(|(path, held)| scene.server.get(path).as_ref() == Some(held)));
    git(&tree, &["revert", "--no-edit", "HEAD"]);
    scene.push_commits().await;
    converges(&scene).await;
    scene.deletes_nothing();
    assert_eq!(scene.server.all(), before);
    // What is right: what is really removed goes.
    scene.git.remove(&format!("{shops}/{}", names[0]));
    scene.push().await;
    let runs = converges(&scene).await;
    assert_eq!(scene.server.get(&format!("/{shops}/{}", names[0])), None);
    unharmed(&scene.server, &strangers);
    tally(&[&scene.server], 3 + strangers.len(), runs)
}

/// E6. What was removed while the policy had one server exists by hand on the next one.
async fn another_server(mut draw: Draw) -> Tally {
    let items = draw.plural();
    let collection = format!("/{items}");
    let server = ApiServer::rest(&[&collection], Ids::Stated("id"));
    let counts = (draw.number(2..5), draw.number(1..5));
    let (kept, old) = (draw.names(counts.0), draw.names(counts.1));
    let files: Vec<(String, String)> = kept.iter().chain(&old).map(|name| file(&items, name)).collect();
    let scene = synced(server, &files).await;
    for name in &old {
        scene.git.remove(&format!("{items}/{name}"));
        if draw.chance(50) {
            scene.push().await;
        }
    }
    scene.push().await;
    converges(&scene).await;
    let next = ApiServer::rest(&[&collection], Ids::Stated("id"));
    let mut strangers = strangers(&mut draw, &next, &items);
    for name in &old {
        let (path, stranger) =
            (format!("{collection}/{name}"), draw.body(json!({"id": name, "owner": "another"})));
        next.put(&path, stranger.clone());
        strangers.insert(path, stranger);
    }
    let reference = draw.chance(50);
    if reference {
        let spec = json!({"http": {"baseURL": next.url()}});
        scene.world.create(declarest("ManagedServer", "next", &spec)).await;
    }
    // Asked for until it is seen: a manifest that is loaded just now takes a patch back.
    let arrived = async || {
        if reference {
            let next = json!({"spec": {"managedServerRef": {"name": "next"}}});
            scene.world.patch::<SyncPolicy>("policy", next).await;
        } else {
            let url = json!({"spec": {"http": {"baseURL": next.url()}}});
            scene.world.patch::<ManagedServer>("server", url).await;
        }
        let has = |name: &String| next.get(&format!("{collection}/{name}")).is_some();
        kept.iter().all(has).then_some(())
    };
    scene.world.eventually("the next server has what is declared", arrived).await;
    converges(&scene).await;
    assert_eq!(next.count("DELETE"), 0, "{:?}", next.writes());
    unharmed(&next, &strangers);
    // What is right: what is removed from now on is removed there.
    scene.git.remove(&format!("{items}/{}", kept[0]));
    scene.push().await;
    let runs = converges(&scene).await;
    assert_eq!(next.get(&format!("{collection}/{}", kept[0])), None);
    unharmed(&next, &strangers);
    tally(&[&scene.server, &next], 3 + old.len() + strangers.len(), runs)
}

/// E7. A branch adds and removes what exists by hand, among other things, before it is merged or pushed at once.
async fn merged(mut draw: Draw) -> Tally {
    let (items, shops) = (draw.plural(), draw.plural());
    let collections = [format!("/{items}"), format!("/{shops}")];
    let server = ApiServer::rest(&collections.each_ref().map(String::as_str), Ids::Stated("id"));
    let strangers = strangers(&mut draw, &server, &shops);
    let keep = draw.name();
    let scene = synced(server, &[file(&items, &keep)]).await;
    let tree = scene.git.work_tree();
    let merges = draw.chance(60);
    if merges {
        git(&tree, &["checkout", "--quiet", "-b", "side"]);
    }
    let mut drafts: Vec<&str> =
        strangers.keys().map(|path| path.rsplit('/').next().unwrap_or_default()).collect();
    for name in &drafts {
        let (path, text) = file(&shops, name);
        scene.git.write(&path, text);
        scene.git.commit("a draft");
    }
    let side = draw.name();
    let (path, text) = file(&items, &side);
    scene.git.write(&path, text);
    draw.shuffle(&mut drafts);
    for name in &drafts {
        scene.git.remove(&format!("{shops}/{name}"));
        if draw.chance(50) {
            scene.git.commit("something else instead");
        }
    }
    scene.git.commit("something else instead");
    let more = draw.name();
    if merges {
        git(&tree, &["checkout", "--quiet", "main"]);
        let (path, text) = file(&items, &more);
        scene.git.write(&path, text);
        scene.git.commit("meanwhile");
        git(&tree, &["merge", "--quiet", "--no-ff", "--message", "merge", "side"]);
    }
    scene.push_commits().await;
    converges(&scene).await;
    scene.deletes_nothing();
    unharmed(&scene.server, &strangers);
    // What is right: the tip declared the other one.
    scene.git.remove(&format!("{items}/{side}"));
    scene.push().await;
    let runs = converges(&scene).await;
    assert_eq!(scene.server.get(&format!("/{items}/{side}")), None);
    assert!(scene.server.get(&format!("/{items}/{keep}")).is_some());
    unharmed(&scene.server, &strangers);
    tally(&[&scene.server], drafts.len() + 4, runs)
}
