//! Runs the actions of a plan in the order of their dependencies.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::Arc;

use tokio::task::JoinSet;

use crate::path::LogicalPath;
use crate::sync::model::{Action, Done, Step, SyncError};
use crate::sync::tasks;

/// The order of two actions if the path of one is below the other.
#[derive(Clone, Copy)]
pub enum Order {
    ParentsFirst,
    ChildrenFirst,
}

/// The dependencies of actions: a graph of indices. An action waits only for its nearest ancestor or its descendants.
struct Graph {
    /// The number of actions that each one waits for.
    waits_for: Vec<usize>,
    /// The actions that wait for each one.
    releases: Vec<Vec<usize>>,
}

impl Graph {
    fn new(actions: &[Arc<Action>], order: Order) -> Self {
        let mut graph = Self { waits_for: vec![0; actions.len()], releases: vec![Vec::new(); actions.len()] };
        let places: HashMap<&LogicalPath, usize> =
            actions.iter().enumerate().map(|(place, action)| (&action.path, place)).collect();
        for (child, action) in actions.iter().enumerate() {
            let nearest = action.path.ancestors().find_map(|ancestor| places.get(&ancestor).copied());
            let Some(parent) = nearest else { continue };
            let (first, then) = match order {
                Order::ParentsFirst => (parent, child),
                Order::ChildrenFirst => (child, parent),
            };
            graph.waits_for[then] += 1;
            graph.releases[first].push(then);
        }
        graph
    }
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
    let Graph { mut waits_for, releases } = Graph::new(&actions, order);
    let mut failed_parents = HashMap::new();
    let mut ready: VecDeque<usize> = (0..actions.len()).filter(|place| waits_for[*place] == 0).collect();
    let mut running = JoinSet::new();
    loop {
        while running.len() < concurrency
            && let Some(place) = ready.pop_front()
        {
            let future = work(Arc::clone(&actions[place]), failed_parents.remove(&place));
            running.spawn(async move { (place, future.await) });
        }
        let Some((place, outcome)) = tasks::next(&mut running).await else { break };
        let action = &actions[place];
        let lost = outcome.is_err() && action.step == Step::Create;
        for &next in &releases[place] {
            waits_for[next] -= 1;
            if lost {
                failed_parents.insert(next, action.path.clone());
            }
            if waits_for[next] == 0 {
                ready.push_back(next);
            }
        }
        note(action, outcome);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::sync::model::Reason;

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
                None => Ok(Done { step: action.step, without_effect: None }),
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

    #[tokio::test]
    async fn deletions_go_children_first_and_on_after_a_failure() {
        let actions = actions(&["/a", "/a/b", "/a/c/d"], Step::Delete);
        let seen = sequence(actions, Order::ChildrenFirst, "/a/b").await;
        assert_eq!(seen, ["/a/b", "/a/c/d", "/a"]);
    }
}
