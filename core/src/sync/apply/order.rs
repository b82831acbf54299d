//! Runs the actions of a plan in the order of their dependencies.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use tokio::task::JoinSet;
use tracing::{Instrument as _, Span};

use crate::error::Categorized as _;
use crate::path::LogicalPath;
use crate::spans;
use crate::sync::model::{Action, Done, Step, SyncError};
use crate::sync::plan::graph::{Graph, Order};
use crate::sync::tasks;

/// Runs `work` for `actions` in `order`, each in its own task and at most `concurrency` at once, and passes each result
/// to `note`. `work` gets the ancestor whose create failed, or a resource that depends on this one and whose deletion
/// failed, if any.
pub async fn execute<F>(
    actions: Vec<Arc<Action>>,
    order: Order,
    concurrency: usize,
    work: impl Fn(Arc<Action>, Option<LogicalPath>) -> F,
    mut note: impl FnMut(&Action, Result<Done, SyncError>),
) where
    F: Future<Output = Result<Done, SyncError>> + Send + 'static,
{
    let (mut graph, mut ready) = Graph::new(&actions, order);
    let mut failed = HashMap::new();
    let mut running = JoinSet::new();
    let phase = if actions.is_empty() { Span::none() } else { spans::apply() };
    loop {
        while running.len() < concurrency
            && let Some(place) = ready.pop_front()
        {
            let future = work(Arc::clone(&actions[place]), failed.remove(&place));
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
        if let Err(error) = &outcome {
            let is_spared = matches!(error, SyncError::NotDeleted(_));
            let next = graph.released_by(place).filter(|next| match order {
                Order::ParentsFirst => {
                    action.step == Step::Create && actions[*next].path.is_within(&action.path)
                }
                // Some servers delete children only together with their parent, but what is not to be deleted keeps it.
                Order::ChildrenFirst => is_spared || !action.path.is_within(&actions[*next].path),
            });
            failed.extend(next.map(|next| (next, action.path.clone())));
        }
        graph.release(place, &mut ready);
        // Here and not in the task, because only this span names the policy.
        if outcome.as_ref().is_ok_and(|done| done.step != Step::Skip) {
            tracing::info!(
                path = %action.path, operation = action.operation(), at = action.pointers().join(" "),
                "resource written"
            );
        }
        note(action, outcome);
    }
    // The plan reports the cycle.
    for place in graph.waiting() {
        let path = actions[place].path.clone();
        note(&actions[place], Err(SyncError::NotAttempted(path, "its dependencies form a cycle".to_owned())));
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
                Some(dependent) if action.step == Step::Delete => {
                    Err(SyncError::NotDeleted(dependent.to_string()))
                }
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
        let paths: Vec<_> = on.iter().map(|path| LogicalPath::parse(path).unwrap()).collect();
        let action = Action::new(LogicalPath::parse(path).unwrap(), step, Reason::Missing);
        Arc::new(Action { depends_on: Some(Box::new(Dependencies { stated: paths.len(), paths })), ..action })
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
    async fn what_others_still_need_keeps_its_parents() {
        let mut actions = actions(&["/a", "/a/b", "/a/c"], Step::Delete);
        actions.push(depending("/d", &["/a/b"], Step::Delete));
        let seen = sequence(actions, Order::ChildrenFirst, "/d").await;
        assert_eq!(seen, ["/a/c", "/d", "!/a/b", "!/a"]);
    }

    #[tokio::test]
    async fn deletions_go_children_first_and_on_after_a_failure() {
        let actions = actions(&["/a", "/a/b", "/a/c/d"], Step::Delete);
        let seen = sequence(actions, Order::ChildrenFirst, "/a/b").await;
        assert_eq!(seen, ["/a/b", "/a/c/d", "/a"]);
    }
}
