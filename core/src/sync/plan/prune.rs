//! The limits of pruning.

use crate::path::LogicalPath;
use crate::sync::model::{Options, PruneLimit, PruneRefused};

/// The number of deletions below which no approval is needed.
const ALWAYS_ALLOWED: usize = 10;
/// The maximum number of paths in a refusal.
const NAMED: usize = 5;

/// The deletions of one pass of a run.
#[derive(Debug, Default)]
pub struct Doomed {
    /// The resources to delete, including those that are created again.
    pub paths: Vec<LogicalPath>,
    /// The number of those, and of those that were sent, that are created again. They are declared.
    pub replaced: usize,
    /// The number of deletions that the passes before have sent.
    pub sent: usize,
}

/// Decides whether all of `doomed` may be deleted. `declared` is the number of resources that are still declared in the
/// scope; `whole_scope` means that this number is known, as in a full run.
pub fn check(doomed: &Doomed, declared: usize, whole_scope: bool, options: &Options) -> Option<PruneRefused> {
    if doomed.paths.is_empty() {
        return None;
    }
    let count = doomed.paths.len() + doomed.sent;
    let owned = declared + count - doomed.replaced;
    let (allowed, limit) = match options.prune_limit {
        PruneLimit::Count(count) => (count, count.to_string()),
        PruneLimit::Percent(percent) => {
            (owned * usize::from(percent) / 100, format!("{percent}% of {owned}"))
        }
    };
    let emptied = whole_scope && declared == 0;
    let why = if emptied && !options.allow_empty {
        "the source path no longer declares resources; sync.allowEmpty: true allows that".to_owned()
    } else if emptied || count <= allowed.max(ALWAYS_ALLOWED) {
        // allowEmpty approves the deletions of an empty scope, so a second approval is not needed.
        return None;
    } else {
        format!("sync.pruneLimit is {limit}; raising it is the approval")
    };
    let paths = doomed.paths.iter().take(NAMED).cloned().collect();
    Some(PruneRefused { count, paths, why })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn doomed(count: usize) -> Doomed {
        let paths = (0..count).map(|index| LogicalPath::parse(&format!("/x/{index}")).unwrap());
        Doomed { paths: paths.collect(), ..Doomed::default() }
    }

    #[rstest]
    #[case((10, 0, 0), 0, false, PruneLimit::Count(0), false, false)]
    #[case((11, 0, 0), 100, true, PruneLimit::Count(10), false, true)]
    #[case((11, 0, 0), 100, true, PruneLimit::Count(11), false, false)]
    #[case((60, 0, 0), 40, true, PruneLimit::Percent(50), false, true)]
    #[case((50, 0, 0), 50, true, PruneLimit::Percent(50), false, false)]
    #[case((1, 0, 0), 0, true, PruneLimit::Percent(50), false, true)]
    #[case((40, 0, 0), 0, true, PruneLimit::Percent(50), true, false)]
    #[case((0, 0, 0), 0, true, PruneLimit::Percent(0), false, false)]
    #[case::replaced((60, 60, 0), 100, true, PruneLimit::Percent(50), false, true)]
    #[case::half_replaced((50, 50, 0), 100, true, PruneLimit::Percent(50), false, false)]
    #[case::sent_before((10, 11, 1), 100, false, PruneLimit::Count(10), false, true)]
    #[case::share_of_all_passes((15, 55, 40), 100, false, PruneLimit::Percent(50), false, true)]
    fn refusals(
        #[case] (doomed, replaced, sent): (usize, usize, usize),
        #[case] declared: usize,
        #[case] whole_scope: bool,
        #[case] limit: PruneLimit,
        #[case] allow_empty: bool,
        #[case] refused: bool,
    ) {
        let doomed = Doomed { replaced, sent, ..self::doomed(doomed) };
        let options = Options { prune_limit: limit, allow_empty, ..Options::default() };
        assert_eq!(check(&doomed, declared, whole_scope, &options).is_some(), refused);
    }

    #[test]
    fn a_refusal_counts_all_and_names_the_first() {
        let options = Options { prune_limit: PruneLimit::Count(3), ..Options::default() };
        let refused = check(&doomed(20), 0, false, &options).unwrap();
        assert_eq!((refused.count, refused.paths.len()), (20, 5));
    }
}
