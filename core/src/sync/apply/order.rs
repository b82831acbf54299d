//! Runs the actions of a plan in the order of their dependencies.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::Arc;

use tokio::task::JoinSet;
use tracing::{Instrument as _, Span};

use crate::error::Categorized as _;
use crate::path::LogicalPath;
use crate::spans;
use crate::sync::model::{Action, Done, Step, SyncError};
use crate::sync::tasks;

/// The order of two actions if the path of one is below the other.
#[derive(Clone, Copy)]
pub enum Order {
    ParentsFirst,
    ChildrenFirst,
}

/// The dependencies of actions: a graph of indices. An action waits for its nearest ancestor or its descendants, and
/// for the actions that metadata states. The indices after those of the actions are groups of actions at or below a path
/// that others depend on.
struct Graph {
    /// The number of actions that each one waits for.
    waits_for: Vec<usize>,
    /// The actions that wait for each one.
    releases: Vec<Vec<usize>>,
}

impl Graph {
    fn new(actions: &[Arc<Action>], order: Order) -> Self {
        let mut groups: HashMap<&LogicalPath, usize> = HashMap::new();
        for path in actions.iter().flat_map(stated) {
            let next = actions.len() + groups.len();
            groups.entry(path).or_insert(next);
        }
        let size = actions.len() + groups.len();
        let mut graph = Self { waits_for: vec![0; size], releases: vec![Vec::new(); size] };
        for (place, action) in actions.iter().enumerate() {
            for path in stated(action) {
                graph.add(order, groups[path], place);
            }
            if groups.is_empty() {
                continue;
            }
            for path in std::iter::once(action.path.clone()).chain(action.path.ancestors()) {
                groups.get(&path).into_iter().for_each(|group| graph.add(order, place, *group));
            }
        }
        let places: HashMap<&LogicalPath, usize> =
            actions.iter().enumerate().map(|(place, action)| (&action.path, place)).collect();
        for (child, action) in actions.iter().enumerate() {
            let nearest = action.path.ancestors().find_map(|ancestor| places.get(&ancestor).copied());
            let Some(parent) = nearest else { continue };
            graph.add(order, parent, child);
        }
        graph
    }

    fn add(&mut self, order: Order, parent: usize, child: usize) {
        let (first, then) = match order {
            Order::ParentsFirst => (parent, child),
            Order::ChildrenFirst => (child, parent),
        };
        self.waits_for[then] += 1;
        self.releases[first].push(then);
    }

    /// Records that `place` is done. Adds the actions that wait for nothing now to `ready`.
    fn release(&mut self, place: usize, actions: usize, ready: &mut VecDeque<usize>) {
        let mut done = vec![place];
        while let Some(place) = done.pop() {
            for next in std::mem::take(&mut self.releases[place]) {
                self.waits_for[next] -= 1;
                match self.waits_for[next] {
                    0 if next < actions => ready.push_back(next),
                    0 => done.push(next),
                    _ => {}
                }
            }
        }
    }

    /// Returns a cycle of actions, if some still wait for others after all work is done.
    fn cycle(&self, actions: &[Arc<Action>]) -> Vec<LogicalPath> {
        let waits = |place: &usize| self.waits_for[*place] > 0;
        let Some(mut place) = (0..self.waits_for.len()).find(waits) else { return Vec::new() };
        // Each waiting action has a waiting predecessor, so the walk back reaches a cycle.
        let before =
            |place: usize| (0..self.releases.len()).find(|first| self.releases[*first].contains(&place));
        let mut walked: Vec<usize> = Vec::new();
        while !walked.contains(&place) {
            walked.push(place);
            match before(place) {
                Some(first) => place = first,
                None => break,
            }
        }
        let start = walked.iter().position(|seen| *seen == place).unwrap_or_default();
        let cycle = walked[start..].iter().chain([&place]);
        cycle.filter_map(|place| Some(actions.get(*place)?.path.clone())).collect()
    }
}

/// Returns the paths that the action waits for because metadata states them. It waits for its parents anyway, and a path
/// above it contains the action itself.
fn stated(action: &Arc<Action>) -> impl Iterator<Item = &LogicalPath> {
    action.depends_on().iter().filter(|path| !action.path.is_within(path))
}

/// Runs `work` for `actions` in `order`, each in its own task and at most `concurrency` at once, and passes each result
/// to `note`. `work` gets the ancestor whose create failed, if any.
pub async fn execute<F>(
    actions: Vec<Arc<Action>>,
    order: Order,
    concurrency: usize,
    work: impl Fn(Arc<Action>, Option<LogicalPath>) -> F,
    mut note: impl FnMut(&Action, Result<Done, SyncError>),
) where
    F: Future<Output = Result<Done, SyncError>> + Send + 'static,
{
    let mut graph = Graph::new(&actions, order);
    let mut failed_parents = HashMap::new();
    let is_free = |place: &usize| graph.waits_for[*place] == 0;
    let mut ready: VecDeque<usize> = (0..actions.len()).filter(is_free).collect();
    // A group without actions.
    for group in (actions.len()..graph.waits_for.len()).filter(is_free).collect::<Vec<_>>() {
        graph.release(group, actions.len(), &mut ready);
    }
    let mut running = JoinSet::new();
    let phase = if actions.is_empty() { Span::none() } else { spans::apply() };
    loop {
        while running.len() < concurrency
            && let Some(place) = ready.pop_front()
        {
            let future = work(Arc::clone(&actions[place]), failed_parents.remove(&place));
            let span = spans::resource(&phase, &actions[place].path, actions[place].step);
            let concluding = span.clone();
            let concluded = async move {
                let outcome = future.await;
                if let Err(error) = &outcome {
                    spans::failed(&concluding, error.category().as_str());
                }
                (place, outcome)
            };
            running.spawn(concluded.instrument(span));
        }
        let Some((place, outcome)) = tasks::next(&mut running).await else { break };
        let action = &actions[place];
        let lost = outcome.is_err() && action.step == Step::Create;
        if lost {
            let children = graph.releases[place]
                .iter()
                .filter(|next| actions.get(**next).is_some_and(|child| child.path.is_within(&action.path)));
            failed_parents.extend(children.map(|next| (*next, action.path.clone())));
        }
        graph.release(place, actions.len(), &mut ready);
        note(action, outcome);
    }
    let cycle = graph.cycle(&actions);
    for (action, _) in actions.iter().zip(&graph.waits_for).filter(|(_, waits_for)| **waits_for > 0) {
        note(action, Err(SyncError::DependencyCycle(action.path.clone(), cycle.clone())));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use rstest::rstest;

    use super::*;
    use crate::sync::model::{Dependencies, Reason};

    fn actions(paths: &[&str], step: Step) -> Vec<Arc<Action>> {
        let action =
            |path: &&str| Arc::new(Action::new(LogicalPath::parse(path).unwrap(), step, Reason::Missing));
        paths.iter().map(action).collect()
    }

    async fn sequence(actions: Vec<Arc<Action>>, order: Order, failing: &str) -> Vec<String> {
        let seen = Mutex::new(Vec::new());
        let work = |action: Arc<Action>, failed_parent: Option<LogicalPath>| {
            let mark = if failed_parent.is_some() { "!" } else { "" };
            seen.lock().unwrap().push(format!("{mark}{}", action.path));
            let path = action.path.clone();
            let outcome = match failed_parent {
                Some(parent) => Err(SyncError::ParentFailed(path, parent)),
                None if path.as_str() == failing => Err(SyncError::NotAttempted(path, String::new())),
                None => Ok(Done { step: action.step, ..Done::NOTHING }),
            };
            async move { outcome }
        };
        // Concurrency 1, because two tasks may end in any order.
        execute(actions, order, 1, work, |_, _| ()).await;
        seen.into_inner().unwrap()
    }

    #[tokio::test]
    async fn parents_before_children_whatever_the_gap() {
        let actions = actions(&["/a", "/a/x/y", "/b", "/a/x/y/z"], Step::Create);
        let seen = sequence(actions, Order::ParentsFirst, "").await;
        assert_eq!(seen, ["/a", "/b", "/a/x/y", "/a/x/y/z"]);
    }

    #[tokio::test]
    async fn a_failed_creation_condemns_all_its_descendants() {
        let actions = actions(&["/a", "/a/b", "/a/b/c", "/d"], Step::Create);
        let seen = sequence(actions, Order::ParentsFirst, "/a").await;
        assert_eq!(seen, ["/a", "/d", "!/a/b", "!/a/b/c"]);
    }

    #[tokio::test]
    async fn a_failed_update_condemns_nothing() {
        let actions = actions(&["/a", "/a/b"], Step::Update);
        let seen = sequence(actions, Order::ParentsFirst, "/a").await;
        assert_eq!(seen, ["/a", "/a/b"]);
    }

    fn depending(path: &str, on: &[&str], step: Step) -> Arc<Action> {
        let paths = on.iter().map(|path| LogicalPath::parse(path).unwrap()).collect();
        let action = Action::new(LogicalPath::parse(path).unwrap(), step, Reason::Missing);
        Arc::new(Action { depends_on: Some(Box::new(Dependencies(paths))), ..action })
    }

    #[tokio::test]
    async fn dependencies_go_first_and_are_deleted_last() {
        for (order, step, expected) in [
            (Order::ParentsFirst, Step::Create, ["/z/a", "/z/b", "/m", "/a/q"]),
            (Order::ChildrenFirst, Step::Delete, ["/a/q", "/m", "/z/a", "/z/b"]),
        ] {
            let mut actions = actions(&["/z/a", "/z/b"], step);
            actions.insert(0, depending("/m", &["/z", "/none"], step));
            actions.insert(0, depending("/a/q", &["/m"], step));
            assert_eq!(sequence(actions, order, "").await, expected);
        }
    }

    #[rstest]
    #[case::created(Order::ParentsFirst, Step::Create, ["/h/a", "/h/a/s/x", "/h/a/s/y"])]
    #[case::deleted(Order::ChildrenFirst, Step::Delete, ["/h/a/s/x", "/h/a/s/y", "/h/a"])]
    #[tokio::test]
    async fn a_dependency_on_a_parent_is_not_a_cycle(
        #[case] order: Order,
        #[case] step: Step,
        #[case] expected: [&str; 3],
    ) {
        let mut actions = actions(&["/h/a"], step);
        actions.push(depending("/h/a/s/x", &["/h/a"], step));
        actions.push(depending("/h/a/s/y", &["/h/a", "/h"], step));
        assert_eq!(sequence(actions, order, "").await, expected);
    }

    #[tokio::test]
    async fn a_cycle_fails_its_actions_and_those_behind_it() {
        let mut actions = actions(&["/d"], Step::Create);
        actions.push(depending("/a", &["/b"], Step::Create));
        actions.push(depending("/b", &["/a"], Step::Create));
        actions.push(depending("/c", &["/a"], Step::Create));
        let mut failed = Vec::new();
        let work = |_, _| async { Ok(Done::NOTHING) };
        let note = |action: &Action, outcome: Result<Done, SyncError>| {
            failed.extend(outcome.err().map(|error| format!("{} {error}", action.path)));
        };
        execute(actions, Order::ParentsFirst, 1, work, note).await;
        assert_eq!(failed.len(), 3, "{failed:?}");
        assert!(failed.iter().all(|line| line.contains("/a -> /b -> /a")), "{failed:?}");
    }

    #[tokio::test]
    async fn deletions_go_children_first_and_on_after_a_failure() {
        let actions = actions(&["/a", "/a/b", "/a/c/d"], Step::Delete);
        let seen = sequence(actions, Order::ChildrenFirst, "/a/b").await;
        assert_eq!(seen, ["/a/b", "/a/c/d", "/a"]);
    }
}
