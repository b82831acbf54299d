//! The workers of a controller: they limit the number of rounds that run at the same time, and select the next one.
//!
//! A round that waits does not hold a worker. The namespaces take turns, and a namespace starts another round only
//! while it has fewer workers than are idle. So one namespace gets at most half of the workers, several busy namespaces
//! leave some workers for others, and no share has to be configured. In a namespace, rounds start in the order in which
//! they were requested, but a round that would exceed the share of its managed server is skipped until another one
//! ends.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::kind::Key;

/// Memory that a round is expected to need. Payloads of more than a few kilobytes have limits of their own.
const MEMORY_OF_A_ROUND: usize = 16 << 20;
/// Bounds of the number of workers. More than the maximum do not make a process of a few cores faster.
const FEWEST: usize = 4;
const MOST: usize = 64;
/// The rounds that run at the same time on one managed server. More would only wait for each other in its gate.
pub const OF_A_SERVER: usize = 4;

/// Returns the number of workers of a process that may use `memory` bytes; `None` means no limit. `lowered` is the
/// number that a user allows.
pub fn number(memory: Option<usize>, lowered: Option<u16>) -> usize {
    let fitting = memory.map_or(MOST, |bytes| bytes / MEMORY_OF_A_ROUND);
    let number = fitting.clamp(FEWEST, MOST);
    lowered.map_or(number, |lowered| number.min(usize::from(lowered)))
}

/// The demand of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Demand {
    /// No remote request, for example because the object is being deleted. It never waits.
    Nothing,
    /// A worker.
    Worker,
    /// A worker, while fewer than `share` rounds run on the managed server with this name in the same namespace.
    Server { name: String, share: usize },
}

/// The workers of one controller.
#[derive(Debug)]
pub struct Workers {
    total: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    busy: usize,
    /// Namespaces with a busy worker or a waiting round.
    namespaces: HashMap<String, Namespace>,
    /// Namespaces with a waiting round. The first one has the next turn.
    turns: VecDeque<String>,
}

#[derive(Debug, Default)]
struct Namespace {
    busy: usize,
    servers: HashMap<String, usize>,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    object: String,
    demand: Demand,
    start: oneshot::Sender<Worker>,
}

/// A busy worker. It is idle again when this is dropped.
#[derive(Debug)]
pub struct Worker(Option<Busy>);

#[derive(Debug)]
struct Busy {
    workers: Arc<Workers>,
    namespace: String,
    server: Option<String>,
}

impl Workers {
    pub fn new(total: usize) -> Arc<Self> {
        Arc::new(Self { total: total.max(1), state: Mutex::default() })
    }

    /// Waits for a worker for a round of `object`. Only one task may wait for an object. If the future is dropped, the
    /// round does not wait any longer.
    pub async fn enter(self: &Arc<Self>, object: &Key, demand: Demand) -> Worker {
        if demand == Demand::Nothing {
            return Worker(None);
        }
        let (start, started) = oneshot::channel();
        {
            let mut state = self.state.lock();
            let namespace = state.namespaces.entry(object.namespace.clone()).or_default();
            namespace.waiting.push_back(Waiting { object: object.name.clone(), demand, start });
            if namespace.waiting.len() == 1 {
                state.turns.push_back(object.namespace.clone());
            }
        }
        self.start();
        // The sender is dropped only after it was used.
        started.await.unwrap_or(Worker(None))
    }

    /// Replaces the demand of a waiting round, because the object has changed.
    pub fn revise(self: &Arc<Self>, object: &Key, demand: &Demand) {
        {
            let mut state = self.state.lock();
            let Some(namespace) = state.namespaces.get_mut(&object.namespace) else { return };
            let Some(round) = namespace.waiting.iter_mut().find(|round| round.object == object.name) else {
                return;
            };
            round.demand = demand.clone();
        }
        self.start();
    }

    /// Starts all rounds that can start.
    fn start(self: &Arc<Self>) {
        loop {
            let next = self.state.lock().next(self.total);
            let Some((namespace, Waiting { demand, start, .. })) = next else { return };
            let worker = match demand {
                Demand::Nothing => Worker(None),
                Demand::Worker => self.busy(namespace, None),
                Demand::Server { name, .. } => self.busy(namespace, Some(name)),
            };
            // If the round no longer waits, its worker becomes idle, and this loop uses it. If the worker started the next
            // round when it is dropped, this would be a recursion, as deep as the number of rounds that no longer wait.
            if let Err(mut worker) = start.send(worker) {
                worker.release();
            }
        }
    }

    fn busy(self: &Arc<Self>, namespace: String, server: Option<String>) -> Worker {
        Worker(Some(Busy { workers: Arc::clone(self), namespace, server }))
    }
}

impl State {
    /// Takes the next round that can start, and counts its worker as busy.
    fn next(&mut self, total: usize) -> Option<(String, Waiting)> {
        for _ in 0..self.turns.len() {
            let name = self.turns.pop_front()?;
            let idle = total - self.busy;
            let namespace = self.namespaces.get_mut(&name)?;
            let may_work = idle > 0 && (namespace.busy == 0 || namespace.busy < idle);
            let found = namespace.waiting.iter().position(|round| match &round.demand {
                Demand::Nothing => true,
                Demand::Worker => may_work,
                Demand::Server { name, share } => {
                    may_work && namespace.servers.get(name).is_none_or(|busy| busy < share)
                }
            });
            let round = found.and_then(|index| namespace.waiting.remove(index));
            if let Some(round) = &round
                && round.demand != Demand::Nothing
            {
                self.busy += 1;
                namespace.busy += 1;
                if let Demand::Server { name, .. } = &round.demand {
                    *namespace.servers.entry(name.clone()).or_default() += 1;
                }
            }
            if !namespace.waiting.is_empty() {
                self.turns.push_back(name.clone());
            } else if namespace.busy == 0 {
                self.namespaces.remove(&name);
            }
            if let Some(round) = round {
                return Some((name, round));
            }
        }
        None
    }

    fn release(&mut self, name: &str, server: Option<&str>) {
        self.busy -= 1;
        let Some(namespace) = self.namespaces.get_mut(name) else { return };
        namespace.busy -= 1;
        if let Some(server) = server
            && let Some(busy) = namespace.servers.get_mut(server)
        {
            *busy -= 1;
            if *busy == 0 {
                namespace.servers.remove(server);
            }
        }
        if namespace.busy == 0 && namespace.waiting.is_empty() {
            self.namespaces.remove(name);
        }
    }
}

impl Worker {
    /// Makes the worker idle. Returns its workers, which may be able to start another round.
    fn release(&mut self) -> Option<Arc<Workers>> {
        let Busy { workers, namespace, server } = self.0.take()?;
        workers.state.lock().release(&namespace, server.as_deref());
        Some(workers)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(workers) = self.release() {
            workers.start();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use futures::future::BoxFuture;
    use rstest::rstest;

    use super::*;

    fn on(server: &str) -> Demand {
        Demand::Server { name: server.to_owned(), share: 2 }
    }

    /// Rounds that wait or run, by their names.
    #[derive(Default)]
    struct Rounds {
        waiting: Vec<(&'static str, BoxFuture<'static, Worker>)>,
        running: Vec<(&'static str, Worker)>,
    }

    impl Rounds {
        fn request(&mut self, workers: &Arc<Workers>, namespace: &str, name: &'static str, demand: Demand) {
            let (workers, key) = (Arc::clone(workers), Key::new(namespace, name));
            self.waiting.push((name, async move { workers.enter(&key, demand).await }.boxed()));
            self.running();
        }

        /// The rounds that run, in the order in which they were requested.
        fn running(&mut self) -> Vec<&'static str> {
            for (name, mut round) in std::mem::take(&mut self.waiting) {
                match round.as_mut().now_or_never() {
                    Some(worker) => self.running.push((name, worker)),
                    None => self.waiting.push((name, round)),
                }
            }
            self.running.iter().map(|(name, _)| *name).collect()
        }

        fn end(&mut self, name: &str) {
            self.running.retain(|(running, _)| *running != name);
        }
    }

    #[test]
    fn a_namespace_has_at_most_half_of_the_workers() {
        let (workers, mut rounds) = (Workers::new(4), Rounds::default());
        for name in ["a1", "a2", "a3", "a4"] {
            rounds.request(&workers, "a", name, Demand::Worker);
        }
        assert_eq!(rounds.running(), ["a1", "a2"]);
        for name in ["b1", "b2"] {
            rounds.request(&workers, "b", name, Demand::Worker);
        }
        rounds.request(&workers, "c", "c1", Demand::Worker);
        assert_eq!(rounds.running(), ["a1", "a2", "b1", "c1"]);
    }

    #[test]
    fn namespaces_take_turns() {
        let (workers, mut rounds) = (Workers::new(1), Rounds::default());
        for (namespace, name) in [("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1"), ("b", "b2")] {
            rounds.request(&workers, namespace, name, Demand::Worker);
        }
        let mut order = Vec::new();
        while let Some(name) = rounds.running().first().copied() {
            order.push(name);
            rounds.end(name);
        }
        assert_eq!(order, ["a1", "a2", "b1", "a3", "b2"]);
    }

    #[test]
    fn rounds_of_a_busy_server_let_others_pass() {
        let (workers, mut rounds) = (Workers::new(64), Rounds::default());
        for name in ["slow1", "slow2", "slow3"] {
            rounds.request(&workers, "a", name, on("slow"));
        }
        rounds.request(&workers, "a", "fast", on("fast"));
        // A server with the same name in another namespace is another server.
        rounds.request(&workers, "b", "other", on("slow"));
        assert_eq!(rounds.running(), ["slow1", "slow2", "fast", "other"]);
        rounds.end("slow1");
        assert_eq!(rounds.running(), ["slow2", "fast", "other", "slow3"]);
    }

    #[test]
    fn a_deletion_does_not_wait() {
        let (workers, mut rounds) = (Workers::new(1), Rounds::default());
        for name in ["running", "deleted", "waiting"] {
            rounds.request(&workers, "a", name, on("server"));
        }
        assert_eq!(rounds.running(), ["running"]);
        workers.revise(&Key::new("a", "deleted"), &Demand::Nothing);
        rounds.request(&workers, "a", "deleted before", Demand::Nothing);
        assert_eq!(rounds.running(), ["running", "deleted", "deleted before"]);
    }

    #[test]
    fn a_round_that_no_longer_waits_has_no_worker() {
        let (workers, mut rounds) = (Workers::new(1), Rounds::default());
        for name in ["running", "dropped", "waiting"] {
            rounds.request(&workers, "a", name, Demand::Worker);
        }
        rounds.waiting.retain(|(name, _)| *name != "dropped");
        rounds.end("running");
        assert_eq!(rounds.running(), ["waiting"]);
        rounds.end("waiting");
        assert_eq!(workers.state.lock().busy, 0);
        assert!(workers.state.lock().namespaces.is_empty());
    }

    /// The operator drops all rounds that wait when it stops.
    #[test]
    fn many_rounds_that_no_longer_wait_need_little_stack() {
        let workers = Workers::new(1);
        let enter = |name: String| {
            let (workers, key) = (Arc::clone(&workers), Key::new("a", name));
            async move { workers.enter(&key, Demand::Worker).await }.boxed()
        };
        let running = enter("running".to_owned()).now_or_never().unwrap();
        let mut waiting: Vec<_> = (0..2000).map(|number| enter(number.to_string())).collect();
        assert!(waiting.iter_mut().all(|round| round.as_mut().now_or_never().is_none()));
        drop(waiting);
        let ends = std::thread::Builder::new().stack_size(128 << 10).spawn(move || drop(running));
        ends.unwrap().join().unwrap();
        assert_eq!(workers.state.lock().busy, 0);
        assert!(workers.state.lock().namespaces.is_empty());
    }

    #[rstest]
    #[case(None, None, 64)]
    #[case(Some(512 << 20), None, 32)]
    #[case(Some(16 << 20), None, 4)]
    #[case(Some(512 << 20), Some(2), 2)]
    #[case(Some(512 << 20), Some(200), 32)]
    fn memory_bounds_the_workers(
        #[case] memory: Option<usize>,
        #[case] lowered: Option<u16>,
        #[case] expected: usize,
    ) {
        assert_eq!(number(memory, lowered), expected);
    }
}
