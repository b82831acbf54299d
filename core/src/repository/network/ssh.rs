//! Git over SSH: one session whose channel is connected to a program of Git.

use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::sync::Arc;

use bytes::Bytes;
use git2::transport::{Service, SmartSubtransport, SmartSubtransportStream};
use russh::client::{self, Handle, Handler};
use russh::keys::{
    Algorithm, HashAlg, PrivateKey, PrivateKeyWithHashAlg, PublicKeyOrCertificate, decode_secret_key,
};
use russh::{Channel, ChannelMsg, Preferred};
use tokio::net::TcpStream;

use super::super::known_hosts::host_and_port;
use super::super::{HostKey, HostKeyError, KnownHosts, Remote, RemoteAuth, RepositoryError};
use super::http::program;
use super::{Session, stopped, take};
use crate::error::with_causes;
use crate::secrets::Secret;
use crate::transport::{CONNECT_TIMEOUT, denial, destinations};

/// The number of bytes of the program's error output that is kept for an error.
const MOST_ERROR_OUTPUT: usize = 1 << 10;

/// The number of `ExtendedData` messages for error output (RFC 4254 section 5.2).
const STDERR: u32 = 1;

/// The connection to one SSH remote.
pub(super) struct SshTransport {
    session: Arc<Session>,
}

/// The input and output of a program of Git on the server.
struct SshStream {
    session: Arc<Session>,
    channel: Channel<client::Msg>,
    /// The connection ends when this is dropped.
    _connection: Handle<Verifier>,
    /// The rest of the output that arrived.
    part: Bytes,
    error_output: Vec<u8>,
}

/// Checks the key of the host.
struct Verifier {
    host: String,
    port: u16,
    /// `None` accepts each key.
    known_hosts: Option<KnownHosts>,
}

#[derive(Debug, thiserror::Error)]
enum SshError {
    #[error(transparent)]
    Protocol(#[from] russh::Error),
    #[error(transparent)]
    HostKey(HostKeyError),
}

impl SshTransport {
    pub fn new(session: Arc<Session>) -> Self {
        Self { session }
    }
}

impl SmartSubtransport for SshTransport {
    /// Starts the program. libgit2 uses the same stream for the refs and the packs.
    fn action(&self, _url: &str, service: Service) -> Result<Box<dyn SmartSubtransportStream>, git2::Error> {
        let session = Arc::clone(&self.session);
        let started = login(&session.remote).map_err(|error| session.fail(error)).and_then(|login| {
            session.run(async {
                let connection = connect(&session.remote, login).await?;
                let channel = start(&session.remote, &connection, program(service)).await?;
                Ok((connection, channel))
            })
        });
        let (connection, channel) = started.map_err(|error| stopped(&error))?;
        Ok(Box::new(SshStream {
            session,
            channel,
            _connection: connection,
            part: Bytes::new(),
            error_output: Vec::new(),
        }))
    }

    fn close(&self) -> Result<(), git2::Error> {
        Ok(())
    }
}

/// What a connection needs of the remote's credentials.
struct Login {
    key: PrivateKey,
    verifier: Verifier,
}

/// Reads the credentials without connecting. A passphrase makes this slow by design.
fn login(remote: &Remote) -> Result<Login, RepositoryError> {
    let RemoteAuth::Ssh { private_key, passphrase, known_hosts, insecure_ignore_host_key, .. } = &remote.auth
    else {
        let configured = "no SSH key is configured";
        return Err(RepositoryError::CredentialsMissing { url: remote.url.to_string(), configured });
    };
    let (host, port) = (remote.url.host.clone(), remote.url.port);
    let known_hosts = match known_hosts {
        _ if *insecure_ignore_host_key => None,
        Some(text) => Some(KnownHosts::parse(text)),
        None => {
            return Err(distrusted(remote, HostKeyError::Unconfigured(host_and_port(&host, port))));
        }
    };
    let key = decode_secret_key(private_key.expose(), passphrase.as_ref().map(Secret::expose));
    let key = key.map_err(|error| RepositoryError::PrivateKey {
        url: remote.url.to_string(),
        reason: unusable(&error),
    })?;
    Ok(Login { key, verifier: Verifier { host, port, known_hosts } })
}

/// Returns the reason why a private key cannot be used.
fn unusable(error: &russh::keys::Error) -> String {
    match error {
        russh::keys::Error::KeyIsEncrypted => "it is encrypted, and no passphrase is configured".to_owned(),
        error => with_causes(error),
    }
}

fn distrusted(remote: &Remote, error: HostKeyError) -> RepositoryError {
    RepositoryError::HostKey { url: remote.url.to_string(), source: Box::new(error) }
}

fn network(remote: &Remote, reason: String) -> RepositoryError {
    RepositoryError::Network { url: remote.url.to_string(), reason }
}

/// Connects, checks the host key, and logs in.
async fn connect(remote: &Remote, login: Login) -> Result<Handle<Verifier>, RepositoryError> {
    let Login { key, verifier } = login;
    // Stage 1: connect.
    let stream = tokio::time::timeout(CONNECT_TIMEOUT, async {
        let addresses = destinations::resolve(&verifier.host, verifier.port).await?;
        TcpStream::connect(&*addresses).await
    });
    let stream = stream.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let stream = stream.map_err(|error| match denial(&error) {
        Some(denied) => RepositoryError::Destination { url: remote.url.to_string(), source: denied.clone() },
        None => network(remote, format!("cannot connect: {error}")),
    })?;
    // Each message waits for the answer to the last one.
    let _ = stream.set_nodelay(true);
    // Stage 2: exchange keys, and check the key of the host.
    let config = client::Config { preferred: verifier.preferred(), ..client::Config::default() };
    let connected = client::connect_stream(Arc::new(config), stream, verifier).await;
    let mut connection = connected.map_err(|error| match error {
        SshError::HostKey(error) => distrusted(remote, error),
        SshError::Protocol(error) => network(remote, with_causes(&error)),
    })?;
    // Stage 3: log in. Servers that do not list their hashes for RSA know SHA-256 (RFC 8332 section 3.3).
    let failed = |error: russh::Error| network(remote, with_causes(&error));
    let mut hash = None;
    if key.algorithm().is_rsa() {
        let best = connection.best_supported_rsa_hash().await.map_err(failed)?;
        hash = best.unwrap_or(Some(HashAlg::Sha256));
    }
    let key = PrivateKeyWithHashAlg::new(Arc::new(key), hash);
    let accepted = connection.authenticate_publickey(remote.user(), key).await.map_err(failed)?.success();
    if !accepted {
        return Err(RepositoryError::CredentialsRejected(remote.url.to_string()));
    }
    Ok(connection)
}

/// Starts a program of Git for the repository.
async fn start(
    remote: &Remote,
    connection: &Handle<Verifier>,
    program: &str,
) -> Result<Channel<client::Msg>, RepositoryError> {
    let failed = |error: russh::Error| network(remote, with_causes(&error));
    let channel = connection.channel_open_session().await.map_err(failed)?;
    channel.exec(true, command(program, &remote.url.ssh_path())).await.map_err(failed)?;
    Ok(channel)
}

/// Returns the command for the shell of the server.
fn command(program: &str, path: &str) -> String {
    format!("{program} '{}'", path.replace('\'', "'\\''").replace('!', "'\\!'"))
}

impl Verifier {
    /// Prefers the algorithms of the known keys, because a server has keys of several algorithms.
    fn preferred(&self) -> Preferred {
        let mut preferred = Preferred::DEFAULT;
        if let Some(hosts) = &self.known_hosts {
            let known = hosts.algorithms(&self.host, self.port);
            let mut keys = preferred.key.to_vec();
            keys.sort_by_key(|algorithm| {
                let rsa = matches!(algorithm, Algorithm::Rsa { .. });
                let name = if rsa { "ssh-rsa" } else { algorithm.as_str() };
                !known.iter().any(|known| known == name)
            });
            preferred.key = Cow::Owned(keys);
        }
        preferred
    }
}

impl Handler for Verifier {
    type Error = SshError;

    async fn check_server_key(&mut self, presented: &PublicKeyOrCertificate) -> Result<bool, SshError> {
        let Some(hosts) = &self.known_hosts else { return Ok(true) };
        let key = match presented {
            PublicKeyOrCertificate::PublicKey { key, .. } => key.to_bytes().ok().and_then(HostKey::new),
            // Never requested.
            PublicKeyOrCertificate::Certificate(_) => None,
        };
        let unreadable = || HostKeyError::Unreadable(host_and_port(&self.host, self.port));
        let checked = key.ok_or_else(unreadable).and_then(|key| hosts.check(&self.host, self.port, &key));
        checked.map(|()| true).map_err(SshError::HostKey)
    }
}

impl SshStream {
    /// Returns the next part of the output; empty at its end.
    async fn receive(
        remote: &Remote,
        channel: &mut Channel<client::Msg>,
        error_output: &mut Vec<u8>,
    ) -> Result<Bytes, RepositoryError> {
        let mut status = 0;
        loop {
            match channel.wait().await {
                Some(ChannelMsg::Data { data }) if !data.is_empty() => return Ok(data),
                Some(ChannelMsg::ExtendedData { data, ext: STDERR }) => {
                    let room = MOST_ERROR_OUTPUT.saturating_sub(error_output.len());
                    error_output.extend(data.iter().take(room));
                }
                Some(ChannelMsg::Failure) => {
                    return Err(network(remote, "the server refused to run the command of Git".to_owned()));
                }
                Some(ChannelMsg::ExitStatus { exit_status }) => status = exit_status,
                Some(_) => {}
                None if status == 0 => return Ok(Bytes::new()),
                None => return Err(ended(remote, status, &String::from_utf8_lossy(error_output))),
            }
        }
    }
}

/// Returns the error of a program that ended with a status other than 0.
fn ended(remote: &Remote, status: u32, output: &str) -> RepositoryError {
    let output = output.trim();
    let says = |texts: &[&str]| texts.iter().any(|text| output.to_lowercase().contains(text));
    if says(&["not appear to be a git repository", "repository not found", "does not exist"]) {
        return RepositoryError::RemoteMissing(remote.url.to_string());
    }
    network(remote, format!("Git on the server ended with status {status}: {output}"))
}

impl Write for SshStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.session.run(async {
            let sent = self.channel.data_bytes(Bytes::copy_from_slice(bytes)).await;
            sent.map_err(|error| network(&self.session.remote, with_causes(&error)))
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for SshStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.part.is_empty() {
            let Self { session, channel, error_output, .. } = self;
            self.part = session.run(Self::receive(&session.remote, channel, error_output))?;
            session.count(&self.part)?;
        }
        Ok(take(&mut self.part, buffer))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/srv/a.git", "git-upload-pack '/srv/a.git'")]
    #[case("~me/a b", "git-upload-pack '~me/a b'")]
    #[case("/a'; rm -rf ~ '", r"git-upload-pack '/a'\''; rm -rf ~ '\'''")]
    #[case("/a!b", r"git-upload-pack '/a'\!'b'")]
    fn paths_are_quoted_for_the_shell(#[case] path: &str, #[case] expected: &str) {
        assert_eq!(command("git-upload-pack", path), expected);
    }

    #[rstest]
    #[case("h ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAAQE=", "rsa-sha2-512")]
    #[case("x ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAAQE=", "ssh-ed25519")]
    fn the_algorithm_of_a_known_key_comes_first(#[case] line: &str, #[case] expected: &str) {
        let known_hosts = Some(KnownHosts::parse(line));
        let verifier = Verifier { host: "h".to_owned(), port: 22, known_hosts };
        assert_eq!(verifier.preferred().key[0].as_str(), expected);
    }
}
