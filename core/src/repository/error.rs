use super::{DEFAULTS_EXTENSIONS, HostKeyError};
use crate::error::{Categorized, Category};
use crate::path::{LogicalPath, PathError};
use crate::payload::PayloadError;
use crate::transport::TlsError;

/// Why desired state could not be read, written or fetched.
///
/// URLs are shown without userinfo and query; secret material never appears.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepositoryError {
    /// A file or directory name given to a tree is absolute or climbs out of it.
    #[error("\"{file}\" is not a path inside the repository")]
    OutsidePath {
        /// The name as given.
        file: String,
    },
    /// A symbolic link leads out of the root directory.
    #[error("\"{file}\" leads outside of the repository through a symbolic link; replace it by a file")]
    SymlinkEscape {
        /// The file relative to the root.
        file: String,
    },
    /// The configured root of a directory tree does not exist.
    #[error("repository root {directory} does not exist")]
    RootMissing {
        /// The directory on disk.
        directory: String,
    },
    /// The configured root of a directory tree is a file.
    #[error("repository root {directory} is not a directory")]
    RootNotDirectory {
        /// The directory on disk.
        directory: String,
    },
    /// A directory or payload file has a name that is not UTF-8.
    #[error("directory \"/{directory}\" holds \"{name}\", whose name is not UTF-8; rename it")]
    NameNotUtf8 {
        /// The directory relative to the root.
        directory: String,
        /// The name with its bad bytes replaced.
        name: String,
    },
    /// A directory name cannot be a segment of a logical path, or a selector on disk does not compile.
    #[error("directory \"/{directory}\": {source}")]
    DirectoryName {
        /// The directory relative to the root.
        directory: String,
        /// What is wrong with its name.
        source: PathError,
    },
    /// Something that is not followed took the place of a directory or a payload, and hides a resource that was
    /// declared there.
    #[error(
        "\"/{file}\" is now {kind}, which is not followed; {path} was declared there and is neither written nor \
         deleted; restore what was there, or remove \"/{file}\" to delete the resource"
    )]
    Hidden {
        /// The resource.
        path: LogicalPath,
        /// What hides it, relative to the root.
        file: String,
        /// What that is.
        kind: &'static str,
    },
    /// One directory holds several `resource.*` files.
    #[error("resource {path} has several payload files ({}); keep one of them", files.join(", "))]
    SeveralPayloads {
        /// The resource.
        path: LogicalPath,
        /// Their names relative to the root, sorted.
        files: Vec<String>,
    },
    /// A payload was listed but is not there any more; only a directory tree can change like this.
    #[error("payload file \"{file}\" of resource {path} does not exist")]
    PayloadMissing {
        /// The resource.
        path: LogicalPath,
        /// The file relative to the root.
        file: String,
    },
    /// A payload file does not decode, or a value cannot be written to it.
    #[error("\"{file}\": {source}")]
    Payload {
        /// The file relative to the root.
        file: String,
        /// What is wrong and where in the file.
        source: PayloadError,
    },
    /// The root was given where only a resource can be.
    #[error("\"/\" cannot be a resource; name a path below it")]
    RootResource,
    /// Nothing is declared at a path.
    #[error("resource {path} not found in the repository")]
    ResourceMissing {
        /// The resource.
        path: LogicalPath,
    },
    /// A resource has no such sidecar.
    #[error("resource {path}: file \"{file}\" not found")]
    SidecarMissing {
        /// The resource.
        path: LogicalPath,
        /// The file relative to the root.
        file: String,
    },
    /// No sidecar can have this name.
    #[error("resource {path}: file \"{file}\" {reason}")]
    SidecarName {
        /// The resource.
        path: LogicalPath,
        /// The name as given.
        file: String,
        /// Why not.
        reason: &'static str,
    },
    /// A selector has no metadata document.
    #[error("metadata \"{stem}.yaml\" not found in the repository")]
    MetadataMissing {
        /// The file relative to the root, without its extension.
        stem: String,
    },
    /// A name that no defaults file can have.
    #[error(
        "\"{name}\" is no defaults file; it is called defaults.<extension> or defaults-<profile>.<extension>, \
         with the extension {}",
        DEFAULTS_EXTENSIONS.join(", ")
    )]
    DefaultsName {
        /// The name as given.
        name: String,
    },
    /// A payload file cannot have this extension.
    #[error("\"{extension}\" cannot be the extension of a payload file")]
    Extension {
        /// The extension as given.
        extension: String,
    },
    /// Something is where a directory or a regular file has to be made.
    #[error("\"{file}\" is in the way: {reason}")]
    InTheWay {
        /// Its name relative to the root.
        file: String,
        /// What it is, and what is needed.
        reason: &'static str,
    },
    /// A text is not a commit id.
    #[error("\"{text}\" is not a commit id (40 hexadecimal digits)")]
    InvalidRevision {
        /// The text as given.
        text: String,
    },
    /// A commit is not in the mirror, or not completely: never fetched, or lost to a force-push.
    #[error("revision {revision} is not in the mirror of the repository")]
    RevisionMissing {
        /// The commit id.
        revision: String,
    },
    /// A pin name cannot be part of a ref.
    #[error("\"{name}\" cannot name a pinned revision")]
    InvalidPin {
        /// The name as given.
        name: String,
    },
    /// A repository URL is malformed or of an unsupported kind.
    #[error("repository URL {url}: {reason}")]
    InvalidUrl {
        /// The URL.
        url: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// A branch name breaks Git's rules for ref names.
    #[error("\"{branch}\" is not a legal branch name")]
    InvalidBranch {
        /// The name as given.
        branch: String,
    },
    /// The remote has no such branch.
    #[error("repository {url} has no branch \"{branch}\"")]
    BranchMissing {
        /// The remote.
        url: String,
        /// The branch asked for.
        branch: String,
    },
    /// The remote says that there is no such repository (or none that these credentials may see).
    #[error("repository {url} does not exist or is hidden from these credentials")]
    RemoteMissing {
        /// The remote.
        url: String,
    },
    /// The remote is a shallow clone. libgit2 refuses how such a server announces where its history ends.
    #[error(
        "repository {url} is itself a shallow clone, which cannot be mirrored over the network; complete \
             its history on the server (git fetch --unshallow)"
    )]
    ShallowRemote {
        /// The remote.
        url: String,
    },
    /// The remote wants credentials of a kind that is not configured.
    #[error("repository {url} asks for credentials, but {configured}")]
    CredentialsMissing {
        /// The remote.
        url: String,
        /// What is configured instead.
        configured: &'static str,
    },
    /// The remote refused the configured credentials.
    #[error("repository {url} refused the configured credentials")]
    CredentialsRejected {
        /// The remote.
        url: String,
    },
    /// The remote redirected to another host, which then asked for credentials.
    #[error("repository {url} redirects to {host}, which must not see its credentials; configure that URL")]
    CredentialsElsewhere {
        /// The remote.
        url: String,
        /// Where the redirect led.
        host: String,
    },
    /// The private key cannot be used: malformed, of an unsupported kind, or the passphrase is wrong.
    #[error("repository {url}: the private key or its passphrase cannot be used: {reason}")]
    PrivateKey {
        /// The remote.
        url: String,
        /// What the SSH library says.
        reason: String,
    },
    /// The identity of the SSH server could not be established.
    #[error("repository {url}: {source}")]
    HostKey {
        /// The remote.
        url: String,
        /// What is wrong with the key.
        source: Box<HostKeyError>,
    },
    /// A file with credentials cannot be read.
    #[error("cannot read {what} {file}: {reason}")]
    CredentialFile {
        /// What the file holds.
        what: &'static str,
        /// The file.
        file: String,
        /// What the system says.
        reason: String,
    },
    /// The proxy refused the configured credentials, or wants some.
    #[error("repository {url}: the proxy on the way there does not accept the configured credentials")]
    ProxyCredentials {
        /// The remote.
        url: String,
    },
    /// The TLS settings cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The remote refused the configured client certificate.
    #[error("repository {url} refused the configured client certificate (TLS alert {alert})")]
    ClientCertificateRejected {
        /// The remote.
        url: String,
        /// The alert (RFC 8446 section 6.2).
        alert: String,
    },
    /// The remote wants a client certificate.
    #[error("repository {url} requires a client certificate, but none is configured (TLS alert {alert})")]
    ClientCertificateMissing {
        /// The remote.
        url: String,
        /// The alert (RFC 8446 section 6.2).
        alert: String,
    },
    /// TLS is configured for a remote that does not use it.
    #[error("repository {url} is not reached over http or https, so tls settings do not apply; remove them")]
    TlsUnused {
        /// The remote.
        url: String,
    },
    /// The remote has commits that a push would lose, or does not let the branch be changed.
    #[error(
        "repository {url} rejected the push to branch \"{branch}\": {reason}; refresh, reconcile, push again"
    )]
    PushRejected {
        /// The remote.
        url: String,
        /// The branch of the remote.
        branch: String,
        /// What the remote says.
        reason: String,
    },
    /// There is no checkout, and none may be made.
    #[error("{directory} is not a Git repository; run `declarest repository init`, or allow autoInit")]
    NotInitialised {
        /// The directory on disk.
        directory: String,
    },
    /// The repository has no files of its own to work on.
    #[error("{directory} is a bare Git repository; name a checkout")]
    Bare {
        /// The directory on disk.
        directory: String,
    },
    /// A push has nowhere to go.
    #[error("cannot push {directory}: no remote is configured")]
    NoRemote {
        /// The directory on disk.
        directory: String,
    },
    /// A push has no branch to start from.
    #[error("cannot push {directory}: HEAD is detached; check a branch out first")]
    DetachedHead {
        /// The directory on disk.
        directory: String,
    },
    /// A push has nothing to send.
    #[error("cannot push {directory}: branch \"{branch}\" has no commit yet")]
    NoCommit {
        /// The directory on disk.
        directory: String,
        /// The branch.
        branch: String,
    },
    /// The checkout has changes that were not committed.
    #[error("{directory} has uncommitted changes ({}); commit or discard them first", shortened(files))]
    Uncommitted {
        /// The directory on disk.
        directory: String,
        /// The files, relative to it, sorted.
        files: Vec<String>,
    },
    /// A fetch or push did not end before its deadline.
    #[error("repository {url}: {action} branch \"{branch}\" took too long and was given up")]
    Timeout {
        /// The remote.
        url: String,
        /// What was done.
        action: &'static str,
        /// The branch asked for.
        branch: String,
    },
    /// Too many earlier fetches still hang in connections that neither answer nor close.
    #[error(
        "repository {url}: {count} earlier fetches still hang in silent connections; not starting another"
    )]
    Hanging {
        /// The remote.
        url: String,
        /// How many.
        count: usize,
    },
    /// The remote could not be reached or did not answer usefully.
    #[error("repository {url}: {reason}")]
    Network {
        /// The remote.
        url: String,
        /// What the transport says.
        reason: String,
    },
    /// A local Git operation failed.
    #[error("could not {action}: {reason}")]
    Git {
        /// What was being done, with its object.
        action: String,
        /// What the Git library says.
        reason: String,
    },
    /// Objects of a mirror that must be there cannot be read.
    #[error("the mirror {directory} is damaged: {reason}")]
    Damaged {
        /// The directory of the mirror.
        directory: String,
        /// What was noticed.
        reason: String,
    },
    /// A local file operation failed.
    #[error("could not {action} {file}: {reason}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// The file on disk.
        file: String,
        /// What the system says.
        reason: String,
    },
}

impl RepositoryError {
    /// A local Git failure while doing `action`.
    pub(super) fn git(action: impl Into<String>) -> impl FnOnce(git2::Error) -> Self {
        |error| Self::Git { action: action.into(), reason: error.message().to_owned() }
    }

    /// A failure to read an object that the repository must have, while doing `action`.
    pub(super) fn damaged(
        repository: &git2::Repository,
        action: String,
    ) -> impl FnOnce(git2::Error) -> Self + use<> {
        let directory = repository.path().display().to_string();
        move |error| Self::Damaged { directory, reason: format!("could not {action}: {}", error.message()) }
    }

    /// A file failure while doing `action` to `file`.
    pub(super) fn io(
        action: &'static str,
        file: &std::path::Path,
    ) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let file = file.display().to_string();
        move |error| Self::Io { action, file, reason: error.to_string() }
    }
}

/// The first few of many names.
fn shortened(files: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = files[..files.len().min(SHOWN)].join(", ");
    if files.len() > SHOWN { format!("{shown} and {} more", files.len() - SHOWN) } else { shown }
}

impl Categorized for RepositoryError {
    fn category(&self) -> Category {
        match self {
            Self::OutsidePath { .. }
            | Self::SymlinkEscape { .. }
            | Self::RootNotDirectory { .. }
            | Self::NameNotUtf8 { .. }
            | Self::DirectoryName { .. }
            | Self::Hidden { .. }
            | Self::Payload { .. }
            | Self::RootResource
            | Self::SidecarName { .. }
            | Self::DefaultsName { .. }
            | Self::Extension { .. }
            | Self::InTheWay { .. }
            | Self::InvalidRevision { .. }
            | Self::InvalidPin { .. }
            | Self::InvalidUrl { .. }
            | Self::InvalidBranch { .. }
            | Self::Tls(_)
            | Self::TlsUnused { .. }
            | Self::Bare { .. }
            | Self::NoRemote { .. }
            | Self::DetachedHead { .. }
            | Self::NoCommit { .. }
            | Self::Uncommitted { .. }
            | Self::ShallowRemote { .. } => Category::Validation,
            Self::RootMissing { .. }
            | Self::PayloadMissing { .. }
            | Self::ResourceMissing { .. }
            | Self::SidecarMissing { .. }
            | Self::MetadataMissing { .. }
            | Self::RevisionMissing { .. }
            | Self::BranchMissing { .. }
            | Self::NotInitialised { .. }
            | Self::RemoteMissing { .. } => Category::NotFound,
            Self::SeveralPayloads { .. } | Self::PushRejected { .. } => Category::Conflict,
            Self::CredentialsMissing { .. }
            | Self::CredentialsRejected { .. }
            | Self::CredentialsElsewhere { .. }
            | Self::CredentialFile { .. }
            | Self::ProxyCredentials { .. }
            | Self::ClientCertificateRejected { .. }
            | Self::ClientCertificateMissing { .. }
            | Self::PrivateKey { .. }
            | Self::HostKey { .. } => Category::Auth,
            Self::Timeout { .. } | Self::Hanging { .. } | Self::Network { .. } => Category::Transport,
            Self::Git { .. } | Self::Damaged { .. } | Self::Io { .. } => Category::Internal,
        }
    }
}
