//! Two policies must not own the same resource.

use declarest_core::path::LogicalPath;
use jiff::Timestamp;
use kube::ResourceExt as _;

use crate::crd::SyncPolicy;

/// What overlap depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub name: String,
    pub created: Option<Timestamp>,
    pub scope: LogicalPath,
}

impl Claim {
    /// The claim of a policy that is alive: not being deleted, not suspended, with a usable path.
    pub fn of(policy: &SyncPolicy) -> Option<Self> {
        if policy.metadata.deletion_timestamp.is_some() || policy.spec.suspend {
            return None;
        }
        let created = policy.metadata.creation_timestamp.as_ref().map(|time| time.0);
        Some(Self { name: policy.name_any(), created, scope: policy.spec.scope().ok()? })
    }

    fn seniority(&self) -> (Option<Timestamp>, &str) {
        (self.created, &self.name)
    }
}

/// The older policy that `own` must give way to, if there is one. Whatever they refer to, equal or nested
/// paths overlap: two owners of one path would undo each other's work for ever.
pub fn senior<'a>(own: &Claim, others: &'a [Claim]) -> Option<&'a Claim> {
    others
        .iter()
        .filter(|other| other.name != own.name && other.scope.overlaps(&own.scope))
        .filter(|other| other.seniority() < own.seniority())
        .min_by(|a, b| a.seniority().cmp(&b.seniority()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn claim(name: &str, second: i64, scope: &str) -> Claim {
        Claim {
            name: name.to_owned(),
            created: Timestamp::from_second(second).ok(),
            scope: LogicalPath::parse(scope).unwrap(),
        }
    }

    #[rstest]
    #[case(claim("b", 2, "/shops"), claim("a", 1, "/shops"), true)]
    #[case(claim("b", 2, "/shops"), claim("a", 1, "/shops/rio"), true)]
    #[case(claim("b", 2, "/shops/rio"), claim("a", 1, "/"), true)]
    #[case(claim("b", 2, "/shops"), claim("a", 1, "/shop"), false)]
    #[case(claim("b", 1, "/shops"), claim("a", 2, "/shops"), false)]
    #[case(claim("b", 1, "/shops"), claim("a", 1, "/shops"), true)]
    #[case(claim("a", 1, "/shops"), claim("b", 1, "/shops"), false)]
    fn the_older_one_runs_on(#[case] own: Claim, #[case] other: Claim, #[case] gives_way: bool) {
        assert_eq!(senior(&own, &[other]).is_some(), gives_way);
    }
}
