//! The members of a list as reads of each of them show them, for files.

use std::borrow::Cow;

use futures::{StreamExt as _, TryStreamExt as _};

use super::remote::Members;
use super::server::Remote;
use crate::metadata::transform::member_expression;
use crate::path::LogicalPath;
use crate::payload::{Object, Value};
use crate::sync::model::SyncError;

impl Remote {
    /// Returns `members` of the collection at `path` with the payloads that reads of them show. Reads the largest one. If
    /// its read shows the same as the list in JSON, or fails, the list is used for the others, too; otherwise they are read.
    ///
    /// Fails if the read shows another resource, or has an envelope around the resource: a file with it would be sent to the
    /// server. Also fails if the read cannot be made: a file with an entry of the list may lack attributes.
    pub async fn as_reads_show(&self, path: &LogicalPath, members: Members) -> Result<Members, SyncError> {
        let located = members.located.as_ref().unwrap_or(path);
        let largest = members.entries.iter().max_by_key(|(_, entry)| entry.payload.weight());
        let Some((at, sample)) = largest else { return Ok(members) };
        let rules = self.rules(at).await?;
        // Such members were already read.
        if rules.lists_names() || rules.reads_from_list() {
            return Ok(members);
        }
        let read = match self.with_payload(path, located, sample.clone()).await {
            Ok(Some(read)) => read,
            Ok(None) | Err(SyncError::Server(_)) => return Ok(members),
            Err(error) => return Err(error),
        };
        let listed = rules.as_read(Cow::Borrowed(&sample.payload));
        if read.payload == *listed && read.format.is_none() {
            return Ok(members);
        }
        if let Some(member) = envelope(&read.payload, &listed) {
            return Err(SyncError::Enveloped(path.clone(), member_expression(member)));
        }
        let reads = futures::stream::iter(members.entries).map(|(at, entry)| async move {
            let read = self.with_payload(path, located, entry).await?;
            Ok::<_, SyncError>(read.map(|entry| (at, entry)))
        });
        let reads = reads.buffered(self.session.client.max_concurrency());
        let entries = reads.try_filter_map(|read| async { Ok(read) }).try_collect().await?;
        Ok(Members { entries, ..members })
    }
}

/// Returns the member of a read that has the content of the entry, if the read has an envelope: it has few members of
/// the entry, and only one of its members has most of them.
fn envelope<'r>(read: &'r Value, entry: &Value) -> Option<&'r str> {
    let (Value::Object(read), Value::Object(entry)) = (read, entry) else { return None };
    let shared = |object: &Object| entry.keys().filter(|name| object.contains_key(*name)).count();
    let holds =
        |member: &Value| member.as_object().is_some_and(|member| shared(member) * 4 >= entry.len() * 3);
    let mut holders = read.iter().filter(|(_, member)| holds(member));
    let (name, _) = holders.next().filter(|_| shared(read) * 2 < entry.len())?;
    holders.next().is_none().then_some(name)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::payload::{PayloadType, decode};

    #[rstest]
    #[case::envelope(r#"{"version": 1, "shop": {"id": 1, "tier": "gold"}}"#, Some("shop"))]
    #[case::without_some(r#"{"data": {"id": 1, "size": 2}}"#, None)]
    #[case::with_more(r#"{"data": {"id": 1, "tier": "gold", "size": 2}}"#, Some("data"))]
    #[case::the_resource_itself(r#"{"id": 1, "data": {"id": 1, "tier": "gold"}}"#, None)]
    #[case::with_others(r#"{"labels": {"id": "Id"}, "result": {"id": 1, "tier": "gold"}}"#, Some("result"))]
    #[case::several(r#"{"meta": {"id": 1, "tier": "gold"}, "spec": {"id": 1, "tier": "free"}}"#, None)]
    #[case::list(r#"{"data": [{"id": 1, "tier": "gold"}]}"#, None)]
    #[case::text("\"x\"", None)]
    fn envelopes(#[case] read: &str, #[case] expected: Option<&str>) {
        let json = |text: &str| decode(PayloadType::Json, text.as_bytes()).unwrap();
        assert_eq!(envelope(&json(read), &json(r#"{"id": 1, "tier": "gold"}"#)), expected);
    }
}
