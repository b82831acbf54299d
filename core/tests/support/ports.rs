//! Ports for programs that cannot choose one themselves.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the ports that Linux (32768 to 60999) and RFC 6335 (from 49152) use for port 0 and for outgoing connections.
/// One of those could be taken before a program that starts slowly listens on it.
const FIRST: u16 = 20_000;
const COUNT: u32 = 12_000;

/// The address of loopback whose ports test programs hold, so that other test programs do not use the same ones.
const RESERVED: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Ports of loopback without a listener. Each is returned once, and to no other test program that runs at the same time.
pub fn free_ports<const N: usize>() -> [u16; N] {
    [(); N].map(|()| free_port())
}

fn free_port() -> u16 {
    static USED: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id() * 97;
    let mut candidates = (0..COUNT).map(|_| (start + USED.fetch_add(1, Ordering::Relaxed)) % COUNT);
    candidates
        .find_map(|offset| {
            let port = FIRST + u16::try_from(offset).ok()?;
            reserve(port).and_then(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, port))).ok().map(|_| port)
        })
        .unwrap_or_else(|| panic!("all ports from {FIRST} are in use"))
}

/// Holds the port until this program ends. Fails if another test program holds it.
fn reserve(port: u16) -> io::Result<()> {
    match TcpListener::bind((RESERVED, port)) {
        Ok(held) => std::mem::forget(held),
        Err(error) if error.kind() == ErrorKind::AddrInUse => return Err(error),
        // Only Linux has this address without configuration.
        Err(_) => {}
    }
    Ok(())
}
