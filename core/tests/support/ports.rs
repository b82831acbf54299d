//! Ports for programs that cannot choose one themselves.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the ports that Linux (32768 to 60999) and RFC 6335 (from 49152) use for port 0 and for outgoing connections.
/// One of those could be taken before a program that starts slowly listens on it.
const FIRST: u16 = 20_000;
const COUNT: u32 = 12_000;

/// Ports of loopback without a listener. Each is returned once to the test programs that run at the same time.
pub fn free_ports<const N: usize>() -> [u16; N] {
    [(); N].map(|()| free_port())
}

fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    /// The locks end with this program, and so do the programs that it starts.
    static LOCKS: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ports");
    std::fs::create_dir_all(&directory).unwrap();
    let start = std::process::id() * 97;
    for _ in 0..COUNT {
        let offset = (start + NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        let port = FIRST + u16::try_from(offset).unwrap();
        // Another test program may have got this port, but not have started the program that listens on it yet.
        let lock = File::create(directory.join(port.to_string())).unwrap();
        if lock.try_lock().is_ok() && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            LOCKS.lock().unwrap().push(lock);
            return port;
        }
    }
    panic!("all ports from {FIRST} are in use")
}
