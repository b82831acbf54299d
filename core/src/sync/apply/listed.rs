//! Created resources that the lists of their collections must show, and records of those that they hide.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;

use super::given;
use super::write::Writer;
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::repository::metadata_place;
use crate::sync::model::{Failure, FailureReason, ListAnswer, Resource, Wanted, Witness, with_id};

/// The pauses before the looks for created resources. Some servers show new resources late.
pub(super) const LIST_PAUSES: [Duration; 3] =
    [Duration::ZERO, Duration::from_millis(500), Duration::from_secs(2)];

impl Writer {
    /// Records the resources that lists must show from now on. If it `asks`, requests these lists, and returns a failure for
    /// each resource that its list does not show: a further command would create it again.
    pub async fn check_lists(&self, asks: bool) -> Vec<Failure> {
        let witnesses = std::mem::take(&mut *self.witnesses.lock());
        for (collection, created) in &witnesses {
            self.session.knowledge.expect_in_list(collection.clone(), created.clone());
        }
        let mut left: Vec<_> = if asks { witnesses.into_iter().collect() } else { Vec::new() };
        let at_once = self.session.client.max_concurrency();
        for pause in LIST_PAUSES {
            if left.is_empty() {
                break;
            }
            // Ctrl-C ends the pause and the further looks.
            let pause = pause.min(self.session.list_delay);
            if tokio::time::timeout(pause, self.stop.requested()).await.is_ok() {
                return Vec::new();
            }
            let looks = futures::stream::iter(left).map(|(collection, created)| async {
                let hidden = self.hidden(&collection, created).await;
                (!hidden.is_empty()).then_some((collection, hidden))
            });
            left = looks.buffer_unordered(at_once).filter_map(ready).collect().await;
        }
        let left = left.into_iter().flat_map(|(collection, hidden)| {
            hidden.into_iter().map(move |witness| (collection.clone(), witness))
        });
        let unlisted =
            futures::stream::iter(left).map(|(collection, witness)| self.unlisted(collection, witness));
        unlisted.buffer_unordered(at_once).filter_map(ready).collect().await
    }

    /// Returns those of the `created` resources that the list of `collection` does not show, unless it fails.
    async fn hidden(&self, collection: &LogicalPath, mut created: Vec<Witness>) -> Vec<Witness> {
        let Some(last) = created.last() else { return created };
        let Ok(Some(declared)) = self.declared(&last.path).await else { return Vec::new() };
        match &*self.referred.fresh().list_for(&declared, collection).await {
            ListAnswer::Listed { listing, .. } => created.retain(|witness| !witness.is_in(listing)),
            ListAnswer::Unknown(_) => created.clear(),
        }
        created
    }

    /// Records that the list of `collection` does not show `witness`. Returns the failure.
    async fn unlisted(&self, collection: LogicalPath, witness: Witness) -> Option<Failure> {
        let Witness { path, id, .. } = &witness;
        let created = self.declared(path).await.ok()??;
        // Runs compare the record with the payload that is sent.
        let created = self.filled(path).await.map_or(created, |(filled, _)| filled);
        let at = created.moved_to(collection.child(created.path.name()).ok());
        let alias = Wanted::of(&created).alias;
        self.record(&created, &at, id, alias, given::Statement::default()).await;
        let file = metadata_place(&path.collection());
        let message = format!(
            "{path}: created{id}, but the list of its collection does not show it, so a further command may create it \
             again; correct the credentials of the server, if they may hide resources, or operations.list in {file}",
            id = with_id(witness.shown_id())
        );
        Some(Failure::local(witness.path, "create", FailureReason::NeverConverges, message))
    }

    /// Records for later processes that runs do not find the resource that was created from `desired`, if the server
    /// shows it `at` its id, so that they notice when it no longer exists. `alias` is the one that the server shows, which
    /// may differ from the desired one. Returns whether the server shows it: the id may be that of a task, so something
    /// else at it does not count.
    pub(super) async fn record(
        &self,
        desired: &Resource,
        at: &Resource,
        id: &str,
        alias: Option<&str>,
        stated: given::Statement<'_>,
    ) -> bool {
        let is_it = |shown: &Value| {
            let shown_alias = || at.rules.identity().alias().evaluate(shown).ok();
            is_copy(&desired.payload, shown)
                || alias.is_some() && shown_alias().as_deref() == alias
                || stated.is(shown, id)
        };
        let is_shown = self.referred.fresh().at_id(at, id).await.flatten().as_ref().is_some_and(is_it);
        if let Some(written) = self.session.written.as_ref().filter(|_| is_shown) {
            written.lose(desired, id);
            super::save(Arc::clone(written)).await;
        }
        is_shown
    }
}

/// Whether a server that assigns ids may have made `shown` of `sent`: they share an attribute, and no other one than the
/// id differs.
fn is_copy(sent: &Value, shown: &Value) -> bool {
    let mut shared = given::shared(sent, shown).peekable();
    shared.peek().is_some() && shared.all(|(sent, shown)| sent == shown)
}
