//! A snapshot of a store in a file: private, and either the old one or the new one whole, whenever
//! the machine stops. It takes the place of a file alone, never that of a device, a pipe or a socket.

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

/// How much is read and written in one go.
const PIECE: usize = 256 << 10;
/// How many links are followed one after the other: as many as Linux follows.
const LINKS: usize = 40;

/// Where a store is saved.
#[derive(Clone, Debug)]
pub struct SnapshotFile {
    path: PathBuf,
    /// Where it is put together, in the same folder. It always has the same name, so that a
    /// gateway that was killed leaves at most one behind.
    unfinished: PathBuf,
    /// Whose lock says that a process keeps the file. It stays there: whoever removed it could take
    /// it away from one that has just opened it.
    lock: PathBuf,
}

/// The right to keep a file. It ends with this value, or with the process.
#[derive(Debug)]
pub struct FileLock {
    /// `None`: the file system knows no locks.
    _lock: Option<File>,
}

// === impl SnapshotFile ===

impl SnapshotFile {
    /// The file at `path`, or where a link there leads to. It need not be there.
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

    /// What is there instead of a file, in a word: nothing may take its place.
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

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps others from writing the file. It fails where another process keeps it.
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

    /// Says whether the file could be written, which it is only later.
    pub fn probe(&self) -> io::Result<()> {
        self.yield_to_others()?;
        drop(self.create()?);
        fs::remove_file(&self.unfinished)
    }

    /// Takes over what the file has into a store that has counted nothing yet. `None`: there is no
    /// file. A file that is damaged changes nothing.
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

    /// Puts what the store has at `now` in the file's place. If that fails, the file before stays.
    pub fn save(&self, store: &Store, rules: &[RegisteredRule], now: Timestamp) -> io::Result<()> {
        let saved = self.write(store, rules, now);
        if saved.is_err() {
            // What is wrong was said already.
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
        // The name is only safe when the folder is.
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

    /// A new file that nobody else may read, whatever was there.
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
        // Opening a pipe would wait for somebody to write to it.
        match fs::metadata(&self.path)?.is_file() {
            true => File::open(&self.path),
            false => Err(io::Error::new(ErrorKind::InvalidInput, "it is no file")),
        }
    }

    fn folder(&self) -> &Path {
        match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        }
    }
}

/// Where the links at `path` lead to, whether or not something is there.
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

/// Takes over what an open file has into a store that has counted nothing yet. A file that is
/// damaged changes nothing.
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
