//! Asking a server again what it was asked before, which shows that nothing changed without a look into Git.
//!
//! A run is a function of its revision, its rules and the answers, so the same answers mean the same again.

use std::sync::Arc;

use futures::StreamExt;

use crate::sync::model::{Answers, Exchange, Options, Report, Session, Settled, Stop};

/// Repeats the requests of the last run with these options that found everything of this revision in its desired
/// state. Its report stands if all answers are the same, byte for byte. Otherwise the result is what was answered,
/// for the run that has to look closer; empty where no such run is known.
pub async fn recheck(session: &Session, options: &Options, stop: &Stop) -> Result<Report, Arc<Answers>> {
    let session = &stop.bounding(session);
    let Some(revision) = session.tree.revision() else { return Err(Arc::default()) };
    match session.knowledge.settled(revision, options) {
        Some(settled) => repeat(session, &settled, stop).await,
        None => Err(Arc::default()),
    }
}

/// Repeats all that a run asked.
async fn repeat(session: &Session, settled: &Settled, stop: &Stop) -> Result<Report, Arc<Answers>> {
    let ask = |exchange: &Exchange| {
        let (client, exchange) = (session.client.clone(), exchange.clone());
        async move {
            let answer = client.send(&exchange.request).await;
            (exchange.answer.is_repeated_by(&answer), exchange.request, answer)
        }
    };
    let requests = futures::stream::iter(&settled.exchanges).map(ask);
    let mut answers = requests.buffer_unordered(session.client.max_concurrency());
    let answers_at_hand = Answers::default();
    let mut same = true;
    while let Some((is_same, request, answer)) = answers.next().await {
        same &= is_same;
        match answer {
            _ if stop.reason().is_some() => return Err(Arc::default()),
            Ok(response) => answers_at_hand.keep(&request, Ok(response)),
            // A run knows better how often to try.
            Err(error) if error.status().is_none() => return Err(Arc::default()),
            Err(_) => {}
        }
    }
    if same {
        return Ok(Report::new(settled.stats, Vec::new(), None, None, stop));
    }
    Err(Arc::new(answers_at_hand))
}
