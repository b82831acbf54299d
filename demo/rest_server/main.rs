//! The in-memory REST server as a program, to try `DeclaREST` against by hand:
//! `cargo run -p declarest-operator --example rest-server -- --listen 127.0.0.1:8085 --server-ids /orders`

mod program;
#[path = "mod.rs"]
mod rest_server;

use clap::Parser;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    program::run(program::Args::parse())
}
