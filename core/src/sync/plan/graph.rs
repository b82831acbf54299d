//! The dependencies of actions.

use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};

use crate::path::LogicalPath;
use crate::sync::model::Action;

/// The order of two actions if the path of one is below the other.
#[derive(Clone, Copy)]
pub enum Order {
    ParentsFirst,
    ChildrenFirst,
}

/// The dependencies of actions: a graph of indices. An action waits for its nearest ancestor or its descendants, and
/// for the actions that metadata or references state. The indices after those of the actions are groups of actions at a
/// path that others depend on, or also below it.
#[derive(Clone)]
pub struct Graph {
    /// The number of actions.
    actions: usize,
    /// The number of actions that each one waits for.
    waits_for: Vec<usize>,
    /// The actions that wait for each one.
    releases: Vec<Vec<usize>>,
}

impl Graph {
    /// Returns the graph, and the actions that wait for nothing. A reference needs one resource. It also waits for those
    /// below that, which may change it, unless this forms a cycle.
    pub fn new<A: Borrow<Action>>(actions: &[A], order: Order) -> (Self, VecDeque<usize>) {
        let actions: Vec<&Action> = actions.iter().map(Borrow::borrow).collect();
        let (graph, ready) = Self::waiting_for(&actions, order, true);
        if actions.iter().copied().flat_map(|action| stated(action, false)).all(|dependency| dependency.whole)
        {
            return (graph, ready);
        }
        let mut tried = graph.clone();
        tried.release_all(ready.clone());
        let is_cyclic = tried.waiting().next().is_some();
        if is_cyclic { Self::waiting_for(&actions, order, false) } else { (graph, ready) }
    }

    /// Returns the graph in which references wait for everything below the other resource, too, if they are `whole`.
    fn waiting_for(actions: &[&Action], order: Order, whole: bool) -> (Self, VecDeque<usize>) {
        let stated = |action| stated(action, whole);
        let mut groups: HashMap<Dependency<'_>, usize> = HashMap::new();
        for dependency in actions.iter().copied().flat_map(stated) {
            let next = actions.len() + groups.len();
            groups.entry(dependency).or_insert(next);
        }
        let size = actions.len() + groups.len();
        let (waits_for, releases) = (vec![0; size], vec![Vec::new(); size]);
        let mut graph = Self { actions: actions.len(), waits_for, releases };
        for (place, action) in actions.iter().enumerate() {
            for dependency in stated(action) {
                graph.add(order, groups[&dependency], place);
            }
            if groups.is_empty() {
                continue;
            }
            let whole = std::iter::once(action.path.clone()).chain(action.path.ancestors());
            let whole: Vec<LogicalPath> = whole.collect();
            let whole = whole.iter().map(|path| Dependency { path, whole: true });
            for dependency in whole.chain([Dependency { path: &action.path, whole: false }]) {
                groups.get(&dependency).into_iter().for_each(|group| graph.add(order, place, *group));
            }
        }
        let places: HashMap<&LogicalPath, usize> =
            actions.iter().enumerate().map(|(place, action)| (&action.path, place)).collect();
        for (child, action) in actions.iter().enumerate() {
            let nearest = action.path.ancestors().find_map(|ancestor| places.get(&ancestor).copied());
            let Some(parent) = nearest else { continue };
            graph.add(order, parent, child);
        }
        let is_free = |place: &usize| graph.waits_for[*place] == 0;
        let mut ready: VecDeque<usize> = (0..actions.len()).filter(is_free).collect();
        // A group without actions.
        for group in (actions.len()..size).filter(is_free).collect::<Vec<_>>() {
            graph.release(group, &mut ready);
        }
        (graph, ready)
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
    pub fn release(&mut self, place: usize, ready: &mut VecDeque<usize>) {
        let mut done = vec![place];
        while let Some(place) = done.pop() {
            for next in std::mem::take(&mut self.releases[place]) {
                self.waits_for[next] -= 1;
                match self.waits_for[next] {
                    0 if next < self.actions => ready.push_back(next),
                    0 => done.push(next),
                    _ => {}
                }
            }
        }
    }

    /// Records that all actions are done, in an order in which none waits.
    fn release_all(&mut self, mut ready: VecDeque<usize>) {
        while let Some(place) = ready.pop_front() {
            self.release(place, &mut ready);
        }
    }

    /// Returns the actions that wait for an action, directly or in a group.
    pub fn released_by(&self, place: usize) -> impl Iterator<Item = usize> {
        let (own, groups): (Vec<usize>, Vec<usize>) =
            self.releases[place].iter().partition(|next| **next < self.actions);
        own.into_iter().chain(groups.into_iter().flat_map(|group| self.releases[group].iter().copied()))
    }

    /// Returns the actions that still wait. After all others are done, they are in a cycle or wait for one.
    pub fn waiting(&self) -> impl Iterator<Item = usize> {
        (0..self.actions).filter(|place| self.waits_for[*place] > 0)
    }

    /// Returns a cycle of actions, if some still wait after all others are done.
    fn cycle(&self) -> Vec<usize> {
        let Some(mut place) = self.waiting().next() else { return Vec::new() };
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
        let mut cycle = walked[start..].to_vec();
        cycle.retain(|place| *place < self.actions);
        cycle.extend(cycle.first().copied());
        cycle
    }
}

/// Returns the actions that are in a cycle of dependencies or wait for one, and the paths of a cycle.
pub fn deadlock<A: Borrow<Action>>(actions: &[A], order: Order) -> (Vec<usize>, Vec<LogicalPath>) {
    // Only stated dependencies can form a cycle.
    if actions.iter().all(|action| stated(action.borrow(), false).next().is_none()) {
        return (Vec::new(), Vec::new());
    }
    let (mut graph, ready) = Graph::new(actions, order);
    graph.release_all(ready);
    let cycle = graph.cycle().into_iter().map(|place| actions[place].borrow().path.clone());
    (graph.waiting().collect(), cycle.collect())
}

/// What an action waits for.
#[derive(PartialEq, Eq, Hash)]
struct Dependency<'a> {
    path: &'a LogicalPath,
    /// Whether it waits for everything below the path, too.
    whole: bool,
}

/// Returns what the action waits for because metadata or references state it. It waits for its parents anyway, and a path
/// above it contains the action itself. `whole` means that references stand for everything below a path, too.
fn stated(action: &Action, whole: bool) -> impl Iterator<Item = Dependency<'_>> {
    let stated = action.depends_on.as_deref().map_or(0, |dependencies| dependencies.stated);
    let paths = action.depends_on().iter().enumerate();
    let paths = paths.map(move |(place, path)| Dependency { path, whole: whole || place < stated });
    paths.filter(|dependency| !action.path.is_within(dependency.path))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::sync::model::{Dependencies, Reason, Step};

    #[rstest]
    #[case::written(Order::ParentsFirst, Step::Create)]
    #[case::deleted(Order::ChildrenFirst, Step::Delete)]
    fn a_cycle_stops_its_actions_and_those_that_wait_for_it(#[case] order: Order, #[case] step: Step) {
        let path = |text: &str| LogicalPath::parse(text).unwrap();
        let depending = |at: &str, on: &[&str]| {
            let paths: Vec<_> = on.iter().map(|on| path(on)).collect();
            let depends_on = Some(Box::new(Dependencies { stated: paths.len(), paths }));
            Action { depends_on, ..Action::new(path(at), step, Reason::Requested) }
        };
        let behind: [&[&str]; 2] = if step == Step::Create { [&["/a"], &[]] } else { [&[], &["/c"]] };
        let mut actions = vec![depending("/a", &["/b"]), depending("/b", &["/a"]), depending("/d", &[])];
        actions.push(depending("/c", behind[0]));
        let first = actions[0].depends_on.as_deref_mut().unwrap();
        first.paths.extend(behind[1].iter().map(|on| path(on)));
        let (waiting, cycle) = deadlock(&actions, order);
        let cycle: Vec<&str> = cycle.iter().map(LogicalPath::as_str).collect();
        assert_eq!((waiting, cycle), (vec![0, 1, 3], vec!["/a", "/b", "/a"]));
    }
}
