//! Git over SSH: a real OpenSSH server on loopback, run as the current user.
#![allow(dead_code, reason = "each test binary that includes this module uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a fixture fails its test")]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::git_remote::output;

const SSHD: &str = "/usr/sbin/sshd";

/// Protects the second client key.
pub const PASSPHRASE: &str = "open sesame";

/// sshd has no way to end with its parent. This shell has: it kills sshd when its stdin, a pipe from the
/// test process, closes, however that process ended.
const UNTIL_STDIN_CLOSES: &str = r#""$@" & pid=$!; cat >/dev/null; kill -9 $pid"#;

/// A server that takes three client keys and runs what git asks for; dropping it stops it.
pub struct Sshd {
    directory: TempDir,
    port: u16,
    wrapper: Child,
}

impl Sshd {
    /// Starts on a free port and returns when it accepts connections.
    pub fn start() -> Sshd {
        assert!(
            Path::new(SSHD).exists(),
            "{SSHD} is missing, the tests of Git over SSH need it; install it with: \
             apt-get install -y openssh-server"
        );
        let directory = tempfile::tempdir().expect("a temporary directory");
        let at = directory.path();
        for (name, kind, passphrase) in [
            ("host", "ed25519", ""),
            ("rsa_host", "rsa", ""),
            ("other_host", "ed25519", ""),
            ("client", "ed25519", ""),
            ("rsa_client", "rsa", ""),
            ("locked", "ed25519", PASSPHRASE),
        ] {
            generate_key(&at.join(name), kind, passphrase);
        }
        let keys = ["client.pub", "rsa_client.pub", "locked.pub"]
            .map(|name| std::fs::read_to_string(at.join(name)).unwrap());
        std::fs::write(at.join("authorized_keys"), keys.concat()).unwrap();
        prepare_privilege_separation();
        // Another process may take a port between its choice and its use; sshd cannot choose one itself.
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            std::fs::write(at.join("sshd_config"), configuration(at, port)).unwrap();
            let mut wrapper = spawn(at);
            if listens(at, &mut wrapper) {
                return Sshd { directory, port, wrapper };
            }
        }
        let log = std::fs::read_to_string(at.join("log.failed")).unwrap_or_default();
        panic!("sshd does not start:\n{log}");
    }

    /// The address of a repository by its absolute path, for the user that runs the test.
    pub fn url(&self, repository: &Path) -> String {
        format!("ssh://{}@127.0.0.1:{}{}", user(), self.port, repository.display())
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// An accepted private key without a passphrase, in OpenSSH's format.
    pub fn client_key(&self) -> String {
        self.read("client")
    }

    /// An accepted RSA key in OpenSSH's format.
    pub fn rsa_client_key(&self) -> String {
        self.read("rsa_client")
    }

    pub fn client_key_path(&self) -> PathBuf {
        self.directory.path().join("client")
    }

    /// An accepted private key that [`PASSPHRASE`] protects.
    pub fn locked_client_key(&self) -> String {
        self.read("locked")
    }

    /// A well-formed private key that the server does not accept.
    pub fn unknown_client_key(&self) -> String {
        self.read("other_host")
    }

    /// A line of `known_hosts` with the key that the server has.
    pub fn known_hosts(&self) -> String {
        self.known_hosts_line("host.pub")
    }

    /// A line of `known_hosts` with the RSA key that the server has beside the one it prefers.
    pub fn rsa_known_hosts(&self) -> String {
        self.known_hosts_line("rsa_host.pub")
    }

    /// A line of `known_hosts` with another key for the same address: the trace of an impostor.
    pub fn wrong_known_hosts(&self) -> String {
        self.known_hosts_line("other_host.pub")
    }

    /// What sshd logged so far.
    pub fn log(&self) -> String {
        self.read("log")
    }

    fn known_hosts_line(&self, public_key: &str) -> String {
        let key = self.read(public_key);
        let mut fields = key.split_whitespace();
        let (kind, key) = (fields.next().unwrap(), fields.next().unwrap());
        format!("[127.0.0.1]:{} {kind} {key}\n", self.port)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.directory.path().join(name)).unwrap()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        drop(self.wrapper.stdin.take());
        // The wrapper ends as its stdin closes; waiting reaps it.
        let _ = self.wrapper.wait();
    }
}

fn user() -> String {
    let id = output(Command::new("id").arg("-un"));
    String::from_utf8(id.stdout).unwrap().trim().to_owned()
}

fn generate_key(path: &Path, kind: &str, passphrase: &str) {
    let made = output(
        Command::new("ssh-keygen").args(["-q", "-t", kind, "-C", "test", "-N", passphrase, "-f"]).arg(path),
    );
    assert!(made.status.success(), "ssh-keygen: {}", String::from_utf8_lossy(&made.stderr));
}

/// Run as root, sshd insists on this directory, which its service unit would make.
fn prepare_privilege_separation() {
    if user() == "root" {
        std::fs::create_dir_all("/run/sshd").expect("root can create /run/sshd");
    }
}

fn configuration(at: &Path, port: u16) -> String {
    let at = at.display();
    format!(
        "ListenAddress 127.0.0.1:{port}\n\
         HostKey {at}/host\n\
         HostKey {at}/rsa_host\n\
         AuthorizedKeysFile {at}/authorized_keys\n\
         PidFile none\n\
         StrictModes no\n\
         UsePAM no\n\
         PasswordAuthentication no\n\
         KbdInteractiveAuthentication no\n\
         PermitRootLogin prohibit-password\n\
         MaxStartups 100\n\
         LogLevel VERBOSE\n"
    )
}

fn spawn(at: &Path) -> Child {
    Command::new("sh")
        .args(["-c", UNTIL_STDIN_CLOSES, "sh", SSHD, "-D", "-f"])
        .arg(at.join("sshd_config"))
        .arg("-E")
        .arg(at.join("log"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("sh starts")
}

/// Waits until sshd says that it listens. False when it does not, usually because the port was taken.
fn listens(at: &Path, wrapper: &mut Child) -> bool {
    let deadline = Instant::now() + Duration::from_mins(1);
    while Instant::now() < deadline {
        let log = std::fs::read_to_string(at.join("log")).unwrap_or_default();
        if log.contains("Server listening on") {
            return true;
        }
        if log.contains("Cannot bind any address") {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(wrapper.stdin.take());
    // The wrapper ends as its stdin closes; waiting reaps it.
    let _ = wrapper.wait();
    let _ = std::fs::rename(at.join("log"), at.join("log.failed"));
    false
}
