//! The rules of our own definitions.

use crate::client_of_ours;
use crate::support::admission;

#[tokio::test]
async fn our_kinds_accept_and_refuse_by_their_rules() {
    let client = client_of_ours().await;
    admission::check_all(&client, client.default_namespace()).await.unwrap_or_else(|wrong| panic!("{wrong}"));
}

#[tokio::test]
async fn our_kinds_get_their_defaults_and_lose_unknown_fields() {
    let client = client_of_ours().await;
    admission::check_defaults(&client, client.default_namespace()).await;
    admission::check_pruning(&client, client.default_namespace()).await;
}
