//! The binary as users run it.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "../../../core/tests/support/api_server.rs"]
mod api_server;
mod byte_server;
#[path = "../../../core/tests/support/canary.rs"]
mod canaries;
mod canary;
mod complete;
mod completion;
mod context_broken;
mod context_catalogue;
mod context_check;
mod context_commands;
mod context_init;
mod context_input;
mod context_rows;
mod context_session_hook;
mod contract;
mod environment;
mod formats;
mod git;
mod globals;
mod habits;
mod masked_lists;
mod openapi;
mod plan;
mod products;
mod prompts;
mod repository_discard;
mod repository_filesystem;
mod repository_git;
mod repository_history;
mod repository_remote;
mod resource_apply;
mod resource_apply_secrets;
mod resource_copy;
mod resource_delete;
mod resource_diff;
mod resource_get;
mod resource_get_local;
mod resource_list;
mod resource_metadata;
mod resource_request;
mod resource_save;
#[path = "../../../demo/rest_server/mod.rs"]
mod rest_server;
mod safety;
mod secret_payloads;
mod secret_saved;
mod secret_values;
mod server;
mod server_check;
mod server_get;
mod terminal;
mod usage;
mod validate;
mod version;
mod world;
