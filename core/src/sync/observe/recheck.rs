//! Repeats the requests of an earlier run that found nothing to do. If the answers are equal, there is still nothing to
//! do, because the result of a run depends only on its revision, its rules and the answers. Git is not read.

use std::sync::Arc;

use futures::StreamExt;

use crate::sync::model::{Answers, Exchange, Options, Report, Session, Stop};

/// Repeats the requests of the last run with these options that found everything of this revision in its desired state.
/// Returns its report if all answers are the same, byte for byte. Otherwise returns the answers for the full run that
/// has to follow; they are empty if no such run is known.
pub async fn recheck(session: &Session, options: &Options, stop: &Stop) -> Result<Report, Arc<Answers>> {
    let session = &session.until(stop);
    let revision = session.tree.revision();
    let settled = revision.and_then(|revision| session.knowledge.settled(revision, options));
    let Some(settled) = settled else { return Err(Arc::default()) };
    let ask = |exchange: &Exchange| {
        let (client, exchange) = (session.client.clone(), exchange.clone());
        async move { (client.send(&exchange.request).await, exchange) }
    };
    let requests = futures::stream::iter(&settled.seen.exchanges).map(ask);
    let mut answers = requests.buffer_unordered(session.client.max_concurrency());
    let (mut at_hand, mut same) = (Answers::default(), true);
    while let Some((answer, exchange)) = answers.next().await {
        same &= exchange.is_repeated_by(&answer);
        match answer {
            _ if stop.reason().is_some() => return Err(Arc::default()),
            Ok(response) => at_hand.keep(&exchange.request, response),
            // The full run decides about retries.
            Err(error) if error.status().is_none() => return Err(Arc::default()),
            Err(_) => {}
        }
    }
    if same {
        Ok(Report { stats: settled.stats, ..Report::default() }.concluded(None, stop))
    } else {
        Err(Arc::new(at_hand))
    }
}
