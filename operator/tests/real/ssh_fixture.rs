//! The SSH fixture does what tests of Git over SSH rely on. Needs openssh-server.

use std::process::Output;

use crate::support::git_remote::{GitRemote, git_command, output};
use crate::support::sshd::{PASSPHRASE, Sshd};

/// Asks the server for its branches with OpenSSH's client, which trusts only `known_hosts`.
fn list(sshd: &Sshd, remote: &GitRemote, known_hosts: &str) -> Output {
    let file = remote.root().join("known_hosts");
    std::fs::write(&file, known_hosts).unwrap();
    let ssh = format!(
        "ssh -F none -i {} -o IdentitiesOnly=yes -o StrictHostKeyChecking=yes -o BatchMode=yes \
         -o UserKnownHostsFile={} -o GlobalKnownHostsFile=/dev/null",
        sshd.client_key_path().display(),
        file.display()
    );
    let url = sshd.url(&remote.bare());
    output(
        git_command(remote.root()).env("GIT_SSH_COMMAND", ssh).args(["ls-remote", &url, "refs/heads/main"]),
    )
}

#[test]
fn serves_a_repository_to_a_client_that_knows_its_host_key() {
    let remote = GitRemote::new();
    remote.write("shops/rio/resource.yaml", "name: rio\n");
    let commit = remote.commit("declare rio");
    remote.push();
    let sshd = Sshd::start();

    let right = list(&sshd, &remote, &sshd.known_hosts());
    let said = String::from_utf8_lossy(&right.stderr).into_owned();
    assert!(right.status.success(), "{said}\n{}", sshd.log());
    assert_eq!(String::from_utf8_lossy(&right.stdout), format!("{commit}\trefs/heads/main\n"));

    let wrong = list(&sshd, &remote, &sshd.wrong_known_hosts());
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(!wrong.status.success());
    assert!(said.contains("Host key verification failed"), "{said}");
}

#[test]
fn keys_differ_and_only_one_is_locked() {
    let sshd = Sshd::start();
    let keys = [sshd.client_key(), sshd.locked_client_key(), sshd.unknown_client_key()];
    assert!(keys.iter().all(|key| key.starts_with("-----BEGIN OPENSSH PRIVATE KEY-----")));
    assert_ne!(keys[0], keys[1]);
    let opens = |passphrase: &str| {
        let path = sshd.client_key_path().with_file_name("locked");
        let mut command = std::process::Command::new("ssh-keygen");
        output(command.args(["-y", "-P", passphrase, "-f"]).arg(path)).status.success()
    };
    assert!(opens(PASSPHRASE));
    assert!(!opens(""));
}
