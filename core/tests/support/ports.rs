//! Ports for programs that cannot choose one themselves.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the ports that Linux (32768 to 60999) and RFC 6335 (from 49152) use for port 0 and for outgoing connections.
/// One of those could be taken before a program that starts slowly listens on it.
const FIRST: u16 = 20_000;
const COUNT: u32 = 12_000;

/// Ports of loopback without a listener. Each is returned once to a test program, and programs that run at the same
/// time start at different ports.
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
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok().map(|_| port)
        })
        .unwrap_or_else(|| panic!("all ports from {FIRST} are in use"))
}
