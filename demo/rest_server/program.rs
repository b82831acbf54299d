//! The server as a program: its arguments, and what it does with them.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use clap::Parser;

use crate::rest_server::{Config, Requirement, RestServer};

/// An in-memory REST server. Counts and log: GET /_control/{counts,log,duplicates}, POST /_control/reset.
#[derive(Parser)]
#[command(name = "rest-server")]
pub struct Args {
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
    /// Wait this long before each answer
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 0)]
    latency_ms: u64,
}

fn requirement(text: &str) -> Result<Requirement, String> {
    let (collection, pointer) =
        text.split_once('=').ok_or_else(|| format!("{text:?} is not PATTERN=POINTER"))?;
    Ok(Requirement { collection: collection.to_owned(), pointer: pointer.to_owned() })
}

/// Serves until Ctrl-C. The first line of output is the address.
#[allow(clippy::print_stdout, reason = "the address is for the user of the program")]
pub fn run(args: Args) -> Result<(), Box<dyn Error>> {
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
    server.latency(Duration::from_millis(args.latency_ms));
    println!("listening on {}, counts at {0}/_control/counts, Ctrl-C to stop", server.url());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(tokio::signal::ctrl_c())?;
    Ok(())
}
