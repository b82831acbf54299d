//! Detects policies that own the same resources, which is not allowed.

use declarest_core::path::LogicalPath;
use jiff::Timestamp;
use kube::ResourceExt as _;

use crate::controller::context::Settings;
use crate::crd::SyncPolicy;

/// The scope of a policy, with the data that decides which policy is older.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub name: String,
    pub created: Option<Timestamp>,
    /// The name of its ManagedServer.
    pub server: String,
    pub scope: LogicalPath,
}

impl Claim {
    /// Returns the claim of a policy, or `None` if it is being deleted or suspended, or its path is invalid.
    pub fn of(policy: &SyncPolicy) -> Option<Self> {
        if policy.metadata.deletion_timestamp.is_some() || policy.spec.suspend {
            return None;
        }
        let created = policy.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let server = policy.spec.managed_server_ref.name.clone();
        Some(Self { name: policy.name_any(), created, server, scope: policy.spec.scope().ok()? })
    }

    /// Returns the claim of a policy whose spec may contain placeholders.
    pub fn expanded(policy: &SyncPolicy, settings: &Settings) -> Option<Self> {
        // The expansion of a spec is slow, and few specs have a placeholder here.
        let spec = &policy.spec;
        if [&spec.source.path, &spec.managed_server_ref.name].iter().any(|text| text.contains("${")) {
            Self::of(&settings.expanded(policy).ok()?)
        } else {
            Self::of(policy)
        }
    }

    /// Returns the claim of a policy that may have the same server.
    pub fn rival(&self, policy: &SyncPolicy, settings: &Settings) -> Option<Self> {
        // With many policies, most have another server. Parsing all their paths in each round would be slow.
        let server = &policy.spec.managed_server_ref.name;
        let possible = *server == self.server || server.contains("${");
        possible.then(|| Self::expanded(policy, settings)).flatten()
    }

    /// Whether another policy claims a part of the same server.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        self.name != other.name && self.server == other.server && self.scope.overlaps(&other.scope)
    }

    fn seniority(&self) -> (Option<Timestamp>, &str) {
        (self.created, &self.name)
    }
}

/// Returns the older policy that overlaps `own`, if there is one. Equal and nested paths of one server overlap, also with
/// different repositories, because two owners of one path would overwrite each other's changes forever.
pub fn senior<'a>(own: &Claim, others: &'a [Claim]) -> Option<&'a Claim> {
    others
        .iter()
        .filter(|other| own.conflicts_with(other))
        .filter(|other| other.seniority() < own.seniority())
        .min_by(|a, b| a.seniority().cmp(&b.seniority()))
}

/// Returns a policy, older or not, that overlaps `own`, if there is one.
pub fn overlapping(own: &Claim, mut others: impl Iterator<Item = Claim>) -> Option<Claim> {
    others.find(|other| own.conflicts_with(other))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn claim(name: &str, second: i64, scope: &str) -> Claim {
        Claim {
            name: name.to_owned(),
            created: Timestamp::from_second(second).ok(),
            server: "staging".to_owned(),
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
    #[case(claim("b", 2, "/shops"), Claim { server: "production".to_owned(), ..claim("a", 1, "/shops") }, false)]
    fn the_older_policy_keeps_its_scope(#[case] own: Claim, #[case] other: Claim, #[case] gives_way: bool) {
        assert_eq!(senior(&own, &[other]).is_some(), gives_way);
    }
}
