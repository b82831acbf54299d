//! The engine against a server that cannot be relied upon.
//!
//! Each test injects faults into a tenth of all requests or more, in several runs with different seeds, until
//! nothing is left to do, and then compares the server with what is declared. `CHAOS_SEEDS` and
//! `CHAOS_RESOURCES` size it, `CHAOS_TABLE` names a file to which the results are added: `make chaos`.
//!
//! The [`situations`] have no faults but those of real servers and histories. `CHAOS_SEED` is the first of their
//! seeds.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "../support/api_server.rs"]
mod api_server;
#[path = "../support/client.rs"]
mod client;
#[path = "../support/commit.rs"]
mod commit;
#[path = "../../../demo/rest_server/mod.rs"]
mod rest_server;

mod converge;
mod elsewhere;
mod fault;
mod proxy;
mod scene;
mod situations;
mod state;
mod table;
mod traffic;
mod wire;

use converge::{Trial, converge};
use fault::Fault;
use rstest::rstest;
use table::{Row, size};

/// Seeds and resources where nothing else is asked for.
const SEEDS: u64 = 2;
const RESOURCES: usize = 30;

/// The share of requests that meet a fault, in percent.
const TENTH: u8 = 10;

#[rstest]
#[case::none("none", TENTH, &[])]
#[case::unavailable("503", TENTH, &[Fault::Unavailable])]
#[case::too_many_requests("429 with `Retry-After`", TENTH, &[Fault::TooManyRequests])]
#[case::reset_before("reset before the request is forwarded", TENTH, &[Fault::ResetBefore])]
#[case::reset_after("reset after the server acted", TENTH, &[Fault::ResetAfter])]
#[case::timeout("timeout", TENTH, &[Fault::Timeout])]
#[case::truncated("truncated body", TENTH, &[Fault::Truncated])]
#[case::wrong_content("wrong content type, HTML page", TENTH, &[Fault::WrongContent])]
#[case::trickle("slow trickle", TENTH, &[Fault::Trickle])]
#[case::redirect("redirect to elsewhere", TENTH, &[Fault::Redirect])]
#[case::mixed("all of these, mixed", TENTH, &Fault::ALL)]
#[case::storm("all of these, in 40 % of all requests", 40, &Fault::ALL)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_run_converges(#[case] name: &str, #[case] percent: u8, #[case] faults: &'static [Fault]) {
    let (seeds, resources) = (size("CHAOS_SEEDS", SEEDS), size("CHAOS_RESOURCES", RESOURCES));
    let trials: Vec<_> =
        (0..seeds).map(|seed| tokio::spawn(converge(Trial { seed, percent, faults, resources }))).collect();
    let mut row = Row::new(name);
    let mut violations = Vec::new();
    for (seed, trial) in trials.into_iter().enumerate() {
        let (found, result) = trial.await.unwrap();
        row.add(result);
        violations.extend(found.into_iter().map(|violation| format!("seed {seed}: {violation}")));
    }
    row.publish();
    assert!(violations.is_empty(), "{name}\n{}", violations.join("\n"));
    let injected = row.injected();
    assert_eq!(faults.is_empty(), injected == 0, "{name}: {injected} faults were injected");
}
