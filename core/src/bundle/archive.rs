//! Unpacks the archive of a bundle.
//!
//! The archive is not trusted: its sizes, file types and paths are checked, and the time and the space that it can
//! use are limited.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType, PaxExtensions};

use super::BundleError;

/// The maximum number of files and directories of an archive.
pub const MAX_ENTRIES: usize = 10_000;
/// The maximum size of one file of an archive, in bytes.
pub const MAX_FILE: u64 = 64 << 20;
/// The maximum size of all files of an archive together, in bytes.
pub const MAX_TOTAL: u64 = 256 << 20;

/// The maximum number of headers per entry. Headers that only describe another entry do not count as entries.
const HEADERS_PER_ENTRY: usize = 4;
/// The maximum size of an extended header, in bytes. It holds a name, timestamps and owners.
const MAX_EXTENSION: u64 = 64 << 10;
/// The maximum length of the name of an entry, in bytes. File systems have similar limits.
const MAX_NAME: usize = 2048;
/// The maximum number of segments of a name.
const MAX_DEPTH: usize = 64;
/// The maximum length of a segment of a name, in bytes.
const MAX_SEGMENT: usize = 255;
/// The maximum number of bytes after the end of the archive, which is padded to a multiple of its block size.
const MAX_PADDING: u64 = 1 << 20;

/// The limits of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Capacity {
    /// The number of files and directories.
    pub entries: usize,
    /// The bytes of one file.
    pub file: u64,
    /// The bytes of all files and extended headers together.
    pub total: u64,
}

impl Default for Capacity {
    fn default() -> Self {
        Self { entries: MAX_ENTRIES, file: MAX_FILE, total: MAX_TOTAL }
    }
}

/// Unpacks the gzip tar `archive` into the directory `target`, which exists and is empty.
///
/// Directories and regular files are written with the default permissions of this process, not those of the archive.
/// Other file types, names that are absolute or contain `..`, duplicate files, and sizes above `capacity` are
/// [`BundleError::Archive`]. In this case `target` contains a part of the archive.
pub(super) fn unpack(
    archive: impl Read,
    target: &Path,
    capacity: Capacity,
    bundle: &str,
) -> Result<(), BundleError> {
    let refuse = |reason: String| BundleError::Archive { bundle: bundle.to_owned(), reason };
    let mut archive = Archive::new(MultiGzDecoder::new(BufReader::new(archive)));
    let mut unpacking = Unpacking {
        target,
        capacity,
        files: HashSet::new(),
        directories: HashSet::new(),
        entries: 0,
        headers: 0,
        total: 0,
        name: None,
    };
    let entries = archive.entries().map_err(|error| refuse(broken(&error)))?.raw(true);
    for entry in entries {
        let entry = entry.map_err(|error| refuse(broken(&error)))?;
        unpacking.entry(entry).map_err(|fault| match fault {
            Fault::Archive(reason) => refuse(reason),
            Fault::Write(place, error) => BundleError::io("write", &place)(error),
        })?;
    }
    if unpacking.name.is_some() {
        return Err(refuse("it ends with an extended header without an entry".to_owned()));
    }
    // Read the rest to verify the checksum at the end of the compressed data.
    let mut rest = archive.into_inner().take(MAX_PADDING);
    io::copy(&mut rest, &mut io::sink()).map(drop).map_err(|error| refuse(broken(&error)))
}

/// The progress of unpacking.
struct Unpacking<'t> {
    target: &'t Path,
    capacity: Capacity,
    files: HashSet<PathBuf>,
    /// The directories below the target, also those without an entry of their own.
    directories: HashSet<PathBuf>,
    entries: usize,
    headers: usize,
    total: u64,
    /// The name of the next entry, if an extended header states it.
    name: Option<Vec<u8>>,
}

enum Fault {
    Archive(String),
    Write(PathBuf, io::Error),
}

impl From<String> for Fault {
    fn from(reason: String) -> Self {
        Self::Archive(reason)
    }
}

impl From<&str> for Fault {
    fn from(reason: &str) -> Self {
        Self::Archive(reason.to_owned())
    }
}

impl Unpacking<'_> {
    fn entry(&mut self, mut entry: Entry<'_, impl Read>) -> Result<(), Fault> {
        self.headers += 1;
        let Capacity { entries: most, file: _, total } = self.capacity;
        if self.headers > HEADERS_PER_ENTRY * most {
            return Err(format!("it holds more than {} headers", HEADERS_PER_ENTRY * most).into());
        }
        let (kind, size) = (entry.header().entry_type(), entry.size());
        // Count skipped data too, because reading it takes time.
        self.total = self.total.saturating_add(size);
        if self.total > total {
            return Err(format!("its files are larger than {} MiB together", total >> 20).into());
        }
        match kind {
            EntryType::XGlobalHeader => return Ok(()),
            EntryType::XHeader => return self.extension(&mut entry),
            EntryType::GNULongName => {
                let mut name = extension_bytes(&mut entry)?;
                while name.last() == Some(&0) {
                    name.pop();
                }
                return self.named(name);
            }
            _ => {}
        }
        self.count()?;
        let name = self.name.take().unwrap_or_else(|| entry.path_bytes().into_owned());
        let path = inner_path(&name)?;
        match kind {
            // In the oldest tar format, a directory is a file whose name ends with a slash.
            EntryType::Directory => self.directory(&path),
            EntryType::Regular | EntryType::Continuous if name.ends_with(b"/") => self.directory(&path),
            EntryType::Regular | EntryType::Continuous => self.file(entry, path),
            other => Err(format!(
                "\"{}\" is {}; only directories and regular files are allowed",
                path.display(),
                kind_name(other)
            )
            .into()),
        }
    }

    /// Reads the name of the next entry from PAX records. Timestamps and owners are ignored.
    fn extension(&mut self, entry: &mut Entry<'_, impl Read>) -> Result<(), Fault> {
        let bytes = extension_bytes(entry)?;
        for record in PaxExtensions::new(&bytes) {
            let record = record.map_err(|error| broken(&error))?;
            match record.key_bytes() {
                b"path" => self.named(record.value_bytes().to_vec())?,
                // A size that needs an extended header exceeds our limits. If both headers state a size, readers
                // disagree about which one is valid.
                b"size" => return Err("a file has its size in an extended header".into()),
                key if key.starts_with(b"GNU.sparse.") => return Err("it holds a sparse file".into()),
                _ => {}
            }
        }
        Ok(())
    }

    fn named(&mut self, name: Vec<u8>) -> Result<(), Fault> {
        match self.name.replace(name) {
            None => Ok(()),
            Some(_) => Err("an entry has two long names".into()),
        }
    }

    fn directory(&mut self, path: &Path) -> Result<(), Fault> {
        if path.as_os_str().is_empty() || self.directories.contains(path) {
            return Ok(());
        }
        self.parents(path)?;
        let place = self.target.join(path);
        fs::create_dir(&place).map_err(|error| self.fault(path, place, error))?;
        self.directories.insert(path.to_owned());
        Ok(())
    }

    /// Creates the directories above `path`. Those that have no entry of their own count, too.
    fn parents(&mut self, path: &Path) -> Result<(), Fault> {
        let Some(parent) = path.parent().filter(|parent| !self.directories.contains(*parent)) else {
            return Ok(());
        };
        if !parent.as_os_str().is_empty() {
            self.count()?;
        }
        self.directory(parent)
    }

    /// Counts one entry.
    fn count(&mut self) -> Result<(), Fault> {
        let most = self.capacity.entries;
        self.entries += 1;
        if self.entries > most { Err(format!("it holds more than {most} entries").into()) } else { Ok(()) }
    }

    fn file(&mut self, mut entry: Entry<'_, impl Read>, path: PathBuf) -> Result<(), Fault> {
        let size = entry.size();
        if size > self.capacity.file {
            let limit = self.capacity.file >> 20;
            return Err(format!("\"{}\" is larger than {limit} MiB", path.display()).into());
        }
        if path.as_os_str().is_empty() {
            return Err("its root is a file".into());
        }
        self.parents(&path)?;
        let place = self.target.join(&path);
        let mut file = File::create_new(&place).map_err(|error| self.fault(&path, place.clone(), error))?;
        let written = copy(&mut entry, &mut file).map_err(|fault| match fault {
            Copied::Read(error) => Fault::Archive(broken(&error)),
            Copied::Write(error) => Fault::Write(place, error),
        })?;
        if written != size {
            return Err(format!("it ends within \"{}\"", path.display()).into());
        }
        self.files.insert(path);
        Ok(())
    }

    /// Returns the error for a file that cannot be created. It is a fault of the archive if two entries conflict.
    fn fault(&self, path: &Path, place: PathBuf, error: io::Error) -> Fault {
        let taken = path.ancestors().find(|ancestor| self.files.contains(*ancestor));
        match (error.kind(), taken) {
            (ErrorKind::AlreadyExists | ErrorKind::NotADirectory, Some(taken)) => {
                format!("\"{}\" is duplicated", taken.display()).into()
            }
            (ErrorKind::AlreadyExists, None) => {
                format!("\"{}\" is a directory and a file", path.display()).into()
            }
            _ => Fault::Write(place, error),
        }
    }
}

enum Copied {
    Read(io::Error),
    Write(io::Error),
}

/// Copies to the end. The error states whether reading or writing failed.
fn copy(from: &mut impl Read, to: &mut impl io::Write) -> Result<u64, Copied> {
    let mut buffer = [0; 16 << 10];
    let mut written = 0;
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(written),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(Copied::Read(error)),
        };
        to.write_all(&buffer[..count]).map_err(Copied::Write)?;
        written += count as u64;
    }
}

fn extension_bytes(entry: &mut Entry<'_, impl Read>) -> Result<Vec<u8>, String> {
    if entry.size() > MAX_EXTENSION {
        return Err(format!("an extended header is larger than {} KiB", MAX_EXTENSION >> 10));
    }
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes).map_err(|error| broken(&error))?;
    Ok(bytes)
}

/// Returns the path of an entry relative to the root of the archive; it is empty for the root.
fn inner_path(name: &[u8]) -> Result<PathBuf, String> {
    let text = std::str::from_utf8(name)
        .map_err(|_| format!("the name \"{}\" is not UTF-8", String::from_utf8_lossy(name)))?;
    let shown: String = text.chars().take(80).collect();
    if text.starts_with('/') || text.split('/').any(|segment| segment == "..") {
        return Err(format!("\"{shown}\" is outside of the archive"));
    }
    let segments = text.split('/').filter(|segment| !matches!(*segment, "" | "."));
    if text.contains(['\\', '\0']) {
        return Err(format!("\"{}\" is not a portable name", shown.escape_debug()));
    }
    if text.len() > MAX_NAME || segments.clone().any(|segment| segment.len() > MAX_SEGMENT) {
        return Err(format!("the name \"{shown}…\" is too long"));
    }
    if segments.clone().count() > MAX_DEPTH {
        return Err(format!("\"{shown}…\" is below more than {MAX_DEPTH} directories"));
    }
    Ok(segments.collect())
}

fn kind_name(kind: EntryType) -> &'static str {
    match kind {
        EntryType::Symlink => "a symbolic link",
        EntryType::Link => "a hard link",
        EntryType::Char | EntryType::Block => "a device",
        EntryType::Fifo => "a named pipe",
        EntryType::GNUSparse => "a sparse file",
        EntryType::GNULongLink => "a link with a long name",
        _ => "of an unknown kind",
    }
}

fn broken(error: &io::Error) -> String {
    format!("it is not a complete gzip tar archive: {error}")
}
