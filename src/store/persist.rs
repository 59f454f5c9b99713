//! Saves a store to a file. The file is private, and after a crash it is either the complete old or the complete
//! new one. Saving replaces only a regular file, never a device, a pipe or a socket.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, BufWriter, ErrorKind, Seek as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::{RestoreSummary, Store};
use crate::clock::Timestamp;
use crate::rules::registry::RegisteredRule;

pub use super::memory::SnapshotError;

#[cfg(test)]
mod tests;

/// The size of the read and write buffers, in bytes.
const PIECE: usize = 256 << 10;
/// The maximum length of a chain of symbolic links; Linux has this limit too.
const LINKS: usize = 40;

/// The file in which a store is saved.
#[derive(Clone, Debug)]
pub struct SnapshotFile {
    path: PathBuf,
    /// The temporary file, in the folder of `path`. Its name is fixed, so that a killed gateway leaves at most
    /// one such file.
    unfinished: PathBuf,
    /// The lock file. A process that holds its lock owns the snapshot file. It is never deleted: deleting it
    /// could invalidate the lock of a process that has just opened it.
    lock: PathBuf,
}

/// Exclusive ownership of a snapshot file, until the value is dropped or the process exits.
#[derive(Debug)]
pub struct FileLock {
    /// `None` if the file system does not support locks.
    _lock: Option<File>,
}

// === impl SnapshotFile ===

impl SnapshotFile {
    /// Creates a handle for the file at `path`, or for the target of a link there. The file need not exist.
    pub fn new(path: &Path) -> Self {
        let path = follow(path);
        let beside = |ending: &str| {
            let mut name = OsString::from(&path);
            name.push(ending);
            PathBuf::from(name)
        };
        Self {
            unfinished: beside(".new"),
            lock: beside(".lock"),
            path,
        }
    }

    /// Returns the type of a file at `path` that must not be replaced. `None` if it is regular or missing.
    pub fn kind_of_obstacle(&self) -> Option<&'static str> {
        let found = fs::symlink_metadata(&self.path).ok()?.file_type();
        match () {
            () if found.is_file() => None,
            () if found.is_dir() => Some("folder"),
            () if found.is_fifo() => Some("pipe"),
            () if found.is_socket() => Some("socket"),
            () if found.is_symlink() => Some("link"),
            () => Some("device"),
        }
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Locks the file against other processes. Fails if another process holds the lock.
    pub fn hold(&self) -> io::Result<FileLock> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let lock = options.open(&self.lock)?;
        match lock.try_lock() {
            Ok(()) => Ok(FileLock { _lock: Some(lock) }),
            Err(TryLockError::WouldBlock) => Err(io::Error::new(
                ErrorKind::ResourceBusy,
                "another process keeps its counters here; each needs a file of its own",
            )),
            Err(TryLockError::Error(_)) => Ok(FileLock { _lock: None }),
        }
    }

    /// Checks that the file can be written, without writing it.
    pub fn probe(&self) -> io::Result<()> {
        self.yield_to_others()?;
        drop(self.create()?);
        fs::remove_file(&self.unfinished)
    }

    /// Restores the file into a store that has counted nothing yet. Returns `None` if there is no file. A
    /// damaged file leaves the store unchanged.
    pub fn load(
        &self,
        store: &mut Store,
        rules: &[RegisteredRule],
        now: Timestamp,
    ) -> Result<Option<RestoreSummary>, SnapshotError> {
        match self.open() {
            Ok(file) => restore(&file, store, rules, now).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(SnapshotError::Io(error)),
        }
    }

    /// Replaces the file with the store's content at `now`. If that fails, the previous file stays.
    pub fn save(&self, store: &Store, rules: &[RegisteredRule], now: Timestamp) -> io::Result<()> {
        let saved = self.write(store, rules, now);
        if saved.is_err() {
            // The caller gets the original error.
            let _ = fs::remove_file(&self.unfinished);
        }
        saved
    }

    fn write(&self, store: &Store, rules: &[RegisteredRule], now: Timestamp) -> io::Result<()> {
        let out = BufWriter::with_capacity(PIECE, self.create()?);
        let file = store.save(out, rules, now)?.into_inner()?;
        file.sync_all()?;
        self.yield_to_others()?;
        fs::rename(&self.unfinished, &self.path)?;
        // The rename is durable only after the folder is synced.
        File::open(self.folder())?.sync_all()
    }

    fn yield_to_others(&self) -> io::Result<()> {
        match self.kind_of_obstacle() {
            None => Ok(()),
            Some(what) => {
                let message = format!("it is a {what}, which is left alone");
                Err(io::Error::new(ErrorKind::InvalidInput, message))
            }
        }
    }

    /// Creates a new file with mode 0600; removes an old one first.
    fn create(&self) -> io::Result<File> {
        match fs::remove_file(&self.unfinished) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        options.open(&self.unfinished)
    }

    fn open(&self) -> io::Result<File> {
        // Opening a pipe would block until another process writes to it.
        if fs::metadata(&self.path)?.is_file() {
            File::open(&self.path)
        } else {
            Err(io::Error::new(ErrorKind::InvalidInput, "it is no file"))
        }
    }

    fn folder(&self) -> &Path {
        match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        }
    }
}

/// Resolves the symbolic links at `path`, whether or not the target exists.
fn follow(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let Ok(target) = fs::read_link(&path) else {
            break;
        };
        path = match path.parent() {
            Some(folder) => folder.join(target),
            None => target,
        };
    }
    path
}

/// Restores an open file into a store that has counted nothing yet. A damaged file leaves the store unchanged.
pub fn restore(
    mut file: &File,
    store: &mut Store,
    rules: &[RegisteredRule],
    now: Timestamp,
) -> Result<RestoreSummary, SnapshotError> {
    file.rewind()?;
    store.verify(BufReader::with_capacity(PIECE, file))?;
    file.rewind()?;
    store.restore(BufReader::with_capacity(PIECE, file), rules, now)
}
