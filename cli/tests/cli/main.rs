//! The binary as users run it.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "../../../core/tests/support/api_server.rs"]
mod api_server;
mod at_once;
mod byte_server;
#[path = "../../../core/tests/support/canary.rs"]
mod canaries;
mod canary;
mod commands;
mod compatibility;
mod complete;
mod completion;
mod context_broken;
mod context_catalogue;
mod context_check;
mod context_commands;
mod context_edit;
mod context_faulty_credential;
mod context_init;
mod context_input;
mod context_rows;
mod context_session_hook;
mod context_v0_3_8;
mod context_wizard;
mod contract;
mod contract_cluster;
mod contract_registry;
mod created_elsewhere;
mod day;
#[path = "../../../core/tests/support/document_keys.rs"]
mod document_keys;
mod environment;
mod errors;
mod formats;
mod git;
mod globals;
mod habits;
mod import;
mod init;
mod interrupt;
mod masked_lists;
mod metadata_keys;
#[path = "../../../core/tests/support/network.rs"]
mod network;
mod openapi;
mod operator;
mod output_formats;
mod pager;
mod plan;
mod plan_prune;
mod products;
mod progress;
mod prompts;
mod pull_request;
mod readme;
mod reference;
mod references;
mod release;
mod reports;
mod repository_discard;
mod repository_filesystem;
mod repository_git;
mod repository_history;
mod repository_remote;
mod resource_apply;
mod resource_apply_secrets;
mod resource_copy;
mod resource_defaults;
mod resource_delete;
mod resource_describe;
mod resource_diff;
mod resource_get;
mod resource_get_local;
mod resource_list;
mod resource_list_undeclared;
mod resource_metadata;
mod resource_metadata_infer;
mod resource_request;
mod resource_save;
#[path = "../../../demo/rest_server/mod.rs"]
mod rest_server;
mod robustness;
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
mod working_days;
mod world;
