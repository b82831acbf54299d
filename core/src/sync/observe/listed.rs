//! Decides whether the list of a collection is also the list of one member, whose own metadata may differ.

use std::sync::Arc;

use crate::metadata::document::ResolvedOperation;
use crate::metadata::{OperationName, Rules};
use crate::sync::model::{Doubt, ListAnswer, Resource};

/// The answer of a list, with the rules by which it was read, if they are valid.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    pub answer: Arc<ListAnswer>,
    pub rules: Option<Arc<Rules>>,
}

impl Listed {
    /// Returns the answer for the decision about `member`. It is unknown if the rules of the member are those of another
    /// list, or take other names from the entries: then an entry may be the member although the list does not show it.
    pub(super) fn of(self, member: &Resource) -> Arc<ListAnswer> {
        let Some(rules) = self.rules.filter(|rules| !Arc::ptr_eq(rules, &member.rules)) else {
            return self.answer;
        };
        match differences(&member.rules, &rules) {
            fields if fields.is_empty() => self.answer,
            fields => Arc::new(ListAnswer::Unknown(Doubt::OtherRules(fields))),
        }
    }
}

/// Returns the fields by which the list of a member would differ from that of its collection. If the collection is itself
/// a resource, the documents of that resource govern its list, too. So a list that only the collection states is the
/// list of its members.
fn differences(member: &Rules, collection: &Rules) -> Vec<&'static str> {
    let (names, other_names) = (member.identity(), collection.identity());
    let (own, others) = (member.resolved(), collection.resolved());
    let (list, other_list) = (own.operation(OperationName::List), others.operation(OperationName::List));
    let fields = [
        ("resource.id", names.id().source() != other_names.id().source()),
        ("resource.alias", names.alias().source() != other_names.alias().source()),
        ("resource.pathNames", names.path_names() != other_names.path_names()),
        (
            "resource.remoteCollectionPath",
            own.remote_collection_path.is_some()
                && own.remote_collection_path != others.remote_collection_path,
        ),
        ("operations.list", *list != ResolvedOperation::default() && list != other_list),
        ("operations.defaults.transforms", !own.transforms.is_empty() && own.transforms != others.transforms),
    ];
    fields.into_iter().filter_map(|(field, differs)| differs.then_some(field)).collect()
}
