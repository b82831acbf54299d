//! The errors of repositories.

use super::{DEFAULTS_EXTENSIONS, HostKeyError};
use crate::error::{categories, clause};
use crate::path::{LogicalPath, PathError};
use crate::payload::PayloadError;
use crate::transport::{Denied, TlsError};

/// A failure to read, write or fetch desired state.
///
/// URLs are shown without userinfo and query. Secret material never appears.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepositoryError {
    /// A file or directory name is absolute or leaves the tree.
    #[error("\"{0}\" is not a path inside the repository")]
    OutsidePath(String),
    /// A symbolic link leads out of the root directory.
    #[error("\"{0}\" leads outside of the repository through a symbolic link; replace it with a file")]
    SymlinkEscape(String),
    /// The configured root of a directory tree does not exist.
    #[error("repository root {0} does not exist")]
    RootMissing(String),
    /// A file that was listed is missing, because another process changed the directory. Holds its path relative to the
    /// root.
    #[error("\"{0}\" was removed while the files were read; try again")]
    Vanished(String),
    /// The configured root of a directory tree is a file.
    #[error("repository root {0} is not a directory")]
    RootNotDirectory(String),
    /// The name of a directory or payload file is not UTF-8.
    #[error("directory \"/{directory}\" contains \"{name}\", whose name is not UTF-8; rename it")]
    NameNotUtf8 {
        /// The directory relative to the root.
        directory: String,
        /// The name with its invalid bytes replaced.
        name: String,
    },
    /// A directory name cannot be a segment of a logical path, or a selector on disk does not compile.
    #[error("directory \"/{directory}\": {source}")]
    DirectoryName {
        /// The directory relative to the root.
        directory: String,
        /// The fault in the name.
        source: PathError,
    },
    /// An entry that is not followed replaced a directory or a payload, and hides a resource that was declared there.
    #[error(
        "\"/{file}\" is now {kind}, which is not followed; {path} was declared there and is neither written nor \
         deleted; restore the previous file, or remove \"/{file}\" to delete the resource"
    )]
    Hidden {
        /// The resource.
        path: LogicalPath,
        /// The entry, relative to the root.
        file: String,
        /// The kind of the entry.
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
    /// A listed payload no longer exists; only a directory tree can change like this.
    #[error("payload file \"{file}\" of resource {path} does not exist")]
    PayloadMissing {
        /// The resource.
        path: LogicalPath,
        /// The file relative to the root.
        file: String,
    },
    /// A file exceeds the size limit.
    #[error("\"{file}\" has {size} bytes, more than the limit of {}", binary(*.limit))]
    TooLarge {
        /// The file relative to the root.
        file: String,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A directory has more directories than one walk visits.
    #[error("\"/{directory}\" has too many directories: {excess}; remove directories")]
    TooManyDirectories {
        /// The directory relative to the root.
        directory: String,
        /// The limit that it exceeds.
        excess: String,
    },
    /// A commit is too large to be read.
    #[error(
        "commit {commit} in the history of the branch has {size} bytes, more than the limit of {}; rewrite the branch \
         without this commit",
        binary(*.limit)
    )]
    CommitTooLarge {
        /// The commit.
        commit: String,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A remote sends too much before the content of a pack.
    #[error(
        "repository {url}: its list of refs exceeds the limit of {}; delete branches and tags, or hide refs such as those \
         of merge requests on the server (transfer.hideRefs)",
        binary(*.limit)
    )]
    TooManyRefs {
        /// The remote.
        url: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// A fetch or the mirror exceeds its quota.
    #[error(
        "repository {url}: {what} exceeds its limit of {}; make the repository smaller, or raise {flag} of the operator",
        binary(*.limit)
    )]
    Quota {
        /// The remote.
        url: String,
        /// The counted object.
        what: &'static str,
        /// The limit in bytes.
        limit: u64,
        /// The flag that sets the limit.
        flag: &'static str,
    },
    /// A payload file cannot be decoded, or a value cannot be encoded for it.
    #[error("\"{file}\": {source}")]
    Payload {
        /// The file relative to the root.
        file: String,
        /// The fault and its place in the file.
        source: PayloadError,
    },
    /// A file holds a pointer of Git LFS in place of its content.
    #[error("{0} is a pointer of Git LFS, and its content is not in Git; store the file without LFS")]
    LfsPointer(String),
    /// The root was named in place of a resource.
    #[error("\"/\" cannot be a resource; use a path below it")]
    RootResource,
    /// No resource is declared at the path.
    #[error("resource {0} not found in the repository")]
    ResourceMissing(LogicalPath),
    /// A resource has no such sidecar.
    #[error("resource {path}: file \"{file}\" not found")]
    SidecarMissing {
        /// The resource.
        path: LogicalPath,
        /// The file relative to the root.
        file: String,
    },
    /// A sidecar cannot have this name.
    #[error("resource {path}: file \"{file}\" {reason}")]
    SidecarName {
        /// The resource.
        path: LogicalPath,
        /// The name as given.
        file: String,
        /// The reason.
        reason: &'static str,
    },
    /// A selector has no metadata document.
    #[error("metadata \"{0}.yaml\" not found in the repository")]
    MetadataMissing(String),
    /// A defaults file cannot have this name.
    #[error(
        "\"{0}\" is not the name of a defaults file; use defaults.<extension> or defaults-<profile>.<extension>, \
         with the extension {known}",
        known = DEFAULTS_EXTENSIONS.join(", ")
    )]
    DefaultsName(String),
    /// A payload file cannot have this extension.
    #[error("\"{0}\" cannot be the extension of a payload file")]
    Extension(String),
    /// An existing entry prevents the creation of a directory or a regular file.
    #[error("\"{file}\" cannot be used: {reason}")]
    InTheWay {
        /// Its name relative to the root.
        file: String,
        /// The kind of the entry, and the required one.
        reason: &'static str,
    },
    /// A text is not a commit id.
    #[error("\"{0}\" is not a commit id (40 hexadecimal digits)")]
    InvalidRevision(String),
    /// A commit is not in the mirror, or not completely: it was never fetched, or was lost to a force-push.
    #[error(
        "revision {0} is not in the mirror of the repository: it was not fetched, or a force-push removed it"
    )]
    RevisionMissing(String),
    /// A pin name cannot be part of a ref.
    #[error("\"{0}\" cannot name a pinned revision")]
    InvalidPin(String),
    /// A repository URL is malformed or of an unsupported kind.
    #[error("repository URL {url}: {reason}")]
    InvalidUrl {
        /// The URL.
        url: String,
        /// The fault.
        reason: &'static str,
    },
    /// A branch name breaks Git's rules for ref names.
    #[error("\"{0}\" is not a legal branch name")]
    InvalidBranch(String),
    /// The remote has no such branch.
    #[error("repository {url} has no branch \"{branch}\"")]
    BranchMissing {
        /// The remote.
        url: String,
        /// The branch asked for.
        branch: String,
    },
    /// The remote reports that the repository does not exist, or that the credentials do not allow access.
    #[error("repository {0} does not exist or is hidden from these credentials")]
    RemoteMissing(String),
    /// The local disk has no space, or the quota of its user is used up.
    #[error(
        "cannot store what was fetched from {url}: {reason}; free space on the disk of the local repository"
    )]
    DiskFull {
        /// The remote.
        url: String,
        /// The error of the operating system.
        reason: String,
    },
    /// The remote is a shallow clone. libgit2 does not accept its announcement of the end of the history.
    #[error(
        "repository {0} is itself a shallow clone, which cannot be mirrored over the network; complete \
             its history on the server (git fetch --unshallow)"
    )]
    ShallowRemote(String),
    /// The remote requires credentials of a kind that is not configured.
    #[error("repository {url} asks for credentials, but {configured}")]
    CredentialsMissing {
        /// The remote.
        url: String,
        /// The configured kind.
        configured: &'static str,
    },
    /// The remote rejected the credentials.
    #[error("repository {0} refused the configured credentials")]
    CredentialsRejected(String),
    /// The remote redirected to another host, which then asked for credentials.
    #[error("repository {url} redirects to {host}, which must not see its credentials; configure that URL")]
    CredentialsElsewhere {
        /// The remote.
        url: String,
        /// The target of the redirect.
        host: String,
    },
    /// The private key cannot be used: malformed, of an unsupported kind, or the passphrase is wrong.
    #[error("repository {url}: the private key or its passphrase cannot be used: {reason}")]
    PrivateKey {
        /// The remote.
        url: String,
        /// The error of the SSH library.
        reason: String,
    },
    /// The identity of the SSH server could not be established.
    #[error("repository {url}: {source}")]
    HostKey {
        /// The remote.
        url: String,
        /// The fault of the key.
        source: Box<HostKeyError>,
    },
    /// The proxy rejected the credentials, or requires some.
    #[error("repository {0}: the proxy rejected the credentials, or requires some")]
    ProxyCredentials(String),
    /// The TLS settings cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The remote rejected the client certificate.
    #[error("repository {url} refused the configured client certificate (TLS alert {alert})")]
    ClientCertificateRejected {
        /// The remote.
        url: String,
        /// The alert (RFC 8446 section 6.2).
        alert: String,
    },
    /// The remote requires a client certificate.
    #[error("repository {url} requires a client certificate, but none is configured (TLS alert {alert})")]
    ClientCertificateMissing {
        /// The remote.
        url: String,
        /// The alert (RFC 8446 section 6.2).
        alert: String,
    },
    /// TLS is configured for a remote that does not use it.
    #[error("repository {0} is not reached over http or https, so tls settings do not apply; remove them")]
    TlsUnused(String),
    /// The remote has commits that a push would lose, or does not allow changes of the branch.
    #[error(
        "repository {url} rejected the push to branch \"{branch}\": {reason}; refresh, reconcile, push again"
    )]
    PushRejected {
        /// The remote.
        url: String,
        /// The branch of the remote.
        branch: String,
        /// The reason that the remote states.
        reason: String,
    },
    /// There is no checkout, and creating one is not allowed.
    #[error("{0} is not a Git repository; run `declarest repository init`, or allow autoInit")]
    NotInitialised(String),
    /// The repository is bare, so it has no files to edit.
    #[error("{0} is a bare Git repository; use a checkout")]
    Bare(String),
    /// A push needs a remote, and none is configured.
    #[error("cannot push {0}: no remote is configured")]
    NoRemote(String),
    /// A push needs a branch, but HEAD is detached.
    #[error("cannot push {0}: HEAD is detached; check out a branch first")]
    DetachedHead(String),
    /// All files would be removed, because no commit has any.
    #[error(
        "{0} has no commit yet, so all its files would be removed; commit them with \"declarest repository commit\", or \
         remove them by hand"
    )]
    NothingCommitted(String),
    /// A push needs a commit, but the branch has none.
    #[error("cannot push {directory}: branch \"{branch}\" has no commit yet")]
    NoCommit {
        /// The directory on disk.
        directory: String,
        /// The branch.
        branch: String,
    },
    /// The checkout has uncommitted changes.
    #[error("{directory} has uncommitted changes ({}); commit or discard them first", shortened(files))]
    Uncommitted {
        /// The directory on disk.
        directory: String,
        /// The files, relative to it, sorted.
        files: Vec<String>,
    },
    /// The first commit would contain files that were in the directory before.
    #[error(
        "{directory} has no commit yet, and the first one would contain files that declare neither resources nor metadata \
         ({}); commit them with \"declarest repository commit\", move them away, or list them in .gitignore",
        shortened(files)
    )]
    BeforeFirstCommit {
        /// The directory on disk.
        directory: String,
        /// The files, relative to it, sorted.
        files: Vec<String>,
    },
    /// A commit would not contain a file.
    #[error("a commit in {directory} would not contain {file}: {reason}")]
    NotCommittable {
        /// The directory on disk.
        directory: String,
        /// The file, relative to it.
        file: String,
        /// The cause and the correction.
        reason: String,
    },
    /// A merge, rebase, cherry-pick or revert was begun in the checkout. A commit would not record it.
    #[error(
        "{0} has conflicts, or a merge, rebase, cherry-pick or revert that has not ended; end or abort it with git first"
    )]
    Unfinished(String),
    /// Some files of the branch are not in the sparse checkout, so they would count as deleted.
    #[error("{0} is a sparse checkout, which is not supported; run \"git sparse-checkout disable\" first")]
    Sparse(String),
    /// A part of the history is absent, so it does not show all resources that were declared: the directory, the kind of
    /// clone, and the correction.
    #[error("{0} is {1}, whose history does not show all resources that Git declared; {2}")]
    Incomplete(String, &'static str, &'static str),
    /// HEAD does not descend from a commit, as far as the clone shows: the directory, and the text that names the commit.
    #[error("the history of HEAD of {0} does not contain the commit \"{1}\"; a shallow clone may lack it")]
    NotAnAncestor(String, String),
    /// A fetch or push did not end before its deadline.
    #[error("repository {url}: {action} branch \"{branch}\" was cancelled because it took too long")]
    Timeout {
        /// The remote.
        url: String,
        /// The action.
        action: &'static str,
        /// The branch asked for.
        branch: String,
    },
    /// Connections to the host are not allowed.
    #[error("repository {url}: {source}")]
    Destination {
        /// The repository.
        url: String,
        /// The denial.
        source: Denied,
    },
    /// The remote could not be reached, or its answer was not usable.
    #[error("repository {url}: {reason}")]
    Network {
        /// The remote.
        url: String,
        /// The error of the transport.
        reason: String,
    },
    /// A local Git operation failed.
    #[error("could not {action}: {reason}")]
    Git {
        /// The failed action with its object.
        action: String,
        /// The error of the Git library.
        reason: String,
    },
    /// Required objects of a mirror cannot be read.
    #[error("the mirror {directory} is damaged: {reason}")]
    Damaged {
        /// The directory of the mirror.
        directory: String,
        /// The damage.
        reason: String,
    },
    /// A local file operation failed.
    #[error("could not {action} {file}: {reason}")]
    Io {
        /// The failed action.
        action: &'static str,
        /// The file on disk.
        file: String,
        /// The error of the system.
        reason: String,
    },
}

impl RepositoryError {
    /// Whether a payload was not read because of its size, or of the memory that its value needs.
    pub fn is_too_heavy(&self) -> bool {
        match self {
            Self::TooLarge { .. } => true,
            Self::Payload { source, .. } => source.is_too_heavy(),
            _ => false,
        }
    }

    /// Returns a converter for a failure of Git during `action`.
    pub(super) fn git(action: impl Into<String>) -> impl FnOnce(git2::Error) -> Self {
        |error| Self::Git { action: action.into(), reason: clause(error.message()) }
    }

    /// The flag of the operator that limits a mirror.
    pub(super) const MIRROR_LIMIT: &str = "--max-mirror-size";

    /// Whether a fetch failed because the mirror is full.
    pub(super) fn is_full_mirror(&self) -> bool {
        matches!(self, Self::Quota { flag: Self::MIRROR_LIMIT, .. })
    }

    /// Returns a converter for a failure to read a required object during `action`.
    pub(super) fn damaged(
        repository: &git2::Repository,
        action: String,
    ) -> impl FnOnce(git2::Error) -> Self + use<> {
        let directory = repository.path().display().to_string();
        move |error| Self::Damaged {
            directory,
            reason: format!("could not {action}: {}", clause(error.message())),
        }
    }

    /// Returns a converter for a failure of `action` on `file`.
    pub(super) fn io(
        action: &'static str,
        file: &std::path::Path,
    ) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let file = file.display().to_string();
        move |error| Self::Io { action, file, reason: error.to_string() }
    }
}

/// Returns a number of bytes in the largest binary unit that fits.
fn binary(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} bytes"),
    }
}

/// Returns the first few of many names.
fn shortened(files: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = files[..files.len().min(SHOWN)].join(", ");
    if files.len() > SHOWN { format!("{shown} and {} more", files.len() - SHOWN) } else { shown }
}

categories!(RepositoryError {
    Validation: OutsidePath, SymlinkEscape, RootNotDirectory, NameNotUtf8, DirectoryName, Hidden, TooLarge, TooManyDirectories,
        Payload, LfsPointer, RootResource, SidecarName, DefaultsName, Extension, InTheWay, InvalidRevision,
        InvalidPin, InvalidUrl, Destination, InvalidBranch, Tls, TlsUnused, Bare, NoRemote, DetachedHead,
        NoCommit, NothingCommitted, Uncommitted, BeforeFirstCommit, NotCommittable, Unfinished, Sparse, Incomplete, NotAnAncestor,
        ShallowRemote;
    NotFound: RootMissing, PayloadMissing, ResourceMissing, SidecarMissing, MetadataMissing, RevisionMissing,
        BranchMissing, NotInitialised, RemoteMissing;
    Auth: CredentialsMissing, CredentialsRejected, CredentialsElsewhere, ProxyCredentials,
        ClientCertificateRejected, ClientCertificateMissing, PrivateKey, HostKey;
    Conflict: SeveralPayloads, PushRejected;
    Transport: Timeout, Network, Quota, CommitTooLarge, TooManyRefs;
    Internal: Git, Damaged, DiskFull, Io, Vanished;
});
