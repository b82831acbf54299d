//! The in-memory REST server as a program, to try `DeclaREST` against by hand:
//! `cargo run -p declarest-operator --example rest-server -- --listen 127.0.0.1:8085 --server-ids /orders`
#![allow(clippy::print_stdout, reason = "the address and the usage are for the person at the terminal")]

#[path = "mod.rs"]
mod rest_server;

use std::net::SocketAddr;

use clap::Parser;
use rest_server::{Config, Requirement, RestServer};

/// An in-memory REST server. Counts and log: GET /_control/{counts,log,duplicates}, POST /_control/reset.
#[derive(Parser)]
#[command(name = "rest-server")]
struct Args {
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1:8085")]
    listen: SocketAddr,
    /// Collection that exists while empty, `*` for any one segment (repeatable)
    #[arg(long, value_name = "PATTERN")]
    collection: Vec<String>,
    /// Collection that assigns the ids of its entries (repeatable)
    #[arg(long, value_name = "PATTERN")]
    server_ids: Vec<String>,
    /// What entries of a collection must have, as PATTERN=POINTER; else 422 (repeatable)
    #[arg(long, value_name = "PATTERN=POINTER", value_parser = requirement)]
    require: Vec<Requirement>,
    /// Let PUT create what is absent
    #[arg(long)]
    upsert: bool,
    /// Answer 409 to a DELETE of a resource with children
    #[arg(long)]
    refuse_delete_with_children: bool,
    /// Answer lists as {"items": [...]}
    #[arg(long)]
    items_envelope: bool,
}

fn requirement(text: &str) -> Result<Requirement, String> {
    let (collection, pointer) =
        text.split_once('=').ok_or_else(|| format!("{text:?} is not PATTERN=POINTER"))?;
    Ok(Requirement { collection: collection.to_owned(), pointer: pointer.to_owned() })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let server = RestServer::start(Config {
        listen: args.listen,
        collections: args.collection,
        server_ids: args.server_ids,
        requirements: args.require,
        upsert: args.upsert,
        refuse_delete_with_children: args.refuse_delete_with_children,
        items_envelope: args.items_envelope,
        control: true,
        ..Config::default()
    })?;
    println!("listening on {}, counts at {0}/_control/counts, Ctrl-C to stop", server.url());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(tokio::signal::ctrl_c())?;
    Ok(())
}
