//! What real servers and real histories led the engine to delete, overwrite or create twice.
//!
//! Each situation is made from a seed: names, ids, numbers of resources, the shapes of lists, the order of commits, and
//! what others made by hand. After each run the store of the server is the judge: whatever was not ours is as it was,
//! nothing exists twice, nothing is gone that Git still declares or never declared, and a run that says that it
//! succeeded has left exactly what Git declares. A run that failed may have left anything else undone; where a
//! situation knows that its runs converge, they must.

mod addresses;
mod creation;
mod desired;
mod draw;
mod identity;
mod judge;
mod lists;
mod products;
mod renames;
mod server;
mod world;

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use rstest::rstest;

use self::draw::Draw;
use self::world::World;
use crate::SEEDS;
use crate::table::{Row, Tally, size};

/// Plays what a seed made of a situation.
type Play = fn(Draw) -> BoxFuture<'static, World>;

/// Longer than any situation takes on a busy machine.
const AT_LAST: Duration = Duration::from_mins(2);

/// So many seeds are played at a time.
const AT_ONCE: u64 = 4;

#[rstest]
#[case::e1("E1: a renamed parent", |draw| renames::parent(draw).boxed())]
#[case::e2("E2: two paths to one address", |draw| addresses::shared(draw).boxed())]
#[case::e3("E3: names that metadata does not speak of", |draw| identity::display_names(draw).boxed())]
#[case::e4("E4: metadata that goes with a removal", |draw| addresses::old_rules(draw).boxed())]
#[case::e8("E8: a removal that cannot be looked for", |draw| lists::refused_to_removals(draw).boxed())]
#[case::e9("E9: a list that is cut", |draw| lists::cut(draw).boxed())]
#[case::e10("E10: a list that is not one", |draw| lists::not_a_list(draw).boxed())]
#[case::e11("E11: a create that takes long", |draw| creation::slow(draw).boxed())]
#[case::e12("E12: a refused list and stated ids", |draw| lists::refused_to_creates(draw).boxed())]
#[case::e24("E24: an answer that states another id", |draw| identity::other_ids(draw).boxed())]
#[case::e25("E25: a stale or foreign id in Git", |draw| identity::stale_ids(draw).boxed())]
#[case::p1("P1: a DELETE that misses", |draw| products::missed_deletes(draw).boxed())]
#[case::p3("P3: a create that ignores members", |draw| creation::ignored(draw).boxed())]
#[case::p13("P13: writers of one URL", |draw| products::one_address(draw).boxed())]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_foreign_is_harmed(#[case] name: &str, #[case] play: Play) {
    let seeds = size("CHAOS_SEEDS", SEEDS);
    let first = size("CHAOS_SEED", 0);
    let mut row = Row::new(name);
    let mut violations = Vec::new();
    for seed in (first..first + seeds).step_by(usize::try_from(AT_ONCE).unwrap()) {
        let last = (seed + AT_ONCE).min(first + seeds);
        let plays = (seed..last).map(|seed| (seed, tokio::spawn(play(Draw::new(name, seed)))));
        for (seed, play) in plays.collect::<Vec<_>>() {
            let world = tokio::time::timeout(AT_LAST, play).await;
            let world = world.unwrap_or_else(|_| panic!("{name}, seed {seed}: it does not end"));
            let world = world.unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}"));
            row.add(tally(&world));
            violations.extend(world.violations.iter().map(|found| format!("{name}, seed {seed}: {found}")));
        }
    }
    row.publish();
    assert!(violations.is_empty(), "{}", violations.join("\n\n"));
}

fn tally(world: &World) -> Tally {
    Tally {
        requests: world.server.log().len(),
        injected: world.steps,
        runs: world.slowest,
        duplicates: world.duplicates(),
        lost_deletes: world.lost_deletes(),
        peak: 0,
        budget: 0,
    }
}
