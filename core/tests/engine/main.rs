//! The engine against a real server: how much it asks, what it believes, and what it writes when answers are
//! lost and others change resources, too.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "../support/api_server.rs"]
mod api_server;
#[path = "../support/client.rs"]
mod client;
#[path = "../support/commit.rs"]
mod commit;
#[path = "../../../demo/rest_server/mod.rs"]
mod rest_server;

mod alike_names;
mod assigned_ids;
mod backpressure;
mod broken_declarations;
mod bulk;
mod completion;
mod copies;
mod deletions;
mod directory_names;
mod empty_lists;
mod first_sync;
mod gateway_answers;
mod hidden_resources;
mod ids_of_tasks;
mod late_lists;
mod linked_pages;
mod lost_answers;
mod moved_children;
mod old_tokens;
mod one_name;
mod one_place;
mod other_rules;
mod parents;
mod path_forms;
mod pruning;
mod recurrences;
mod references;
mod replacements;
mod scene;
mod secrets;
mod server_limits;
mod shared_collections;
mod stated_failures;
mod stops;
mod two_ids;
mod unconfirmed;
mod unfindable;
mod unsent;
mod versions;
mod world;
mod write_only;
