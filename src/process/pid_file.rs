//! `server.pid_file`: the file with the id of the running process.
//!
//! A running gateway keeps its file locked (flock(2)). So a file without a lock is stale, whatever id it contains,
//! and no other process can use the file of a running gateway by mistake. The kernel releases the lock when the process ends.

use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process;
use std::thread;
use std::time::Duration;

use rustix::fs as kernel;

/// The maximum size of a file that can be one with a process id, in bytes.
const MAX_LENGTH: u64 = 32;
/// How often and at which interval a locked file is tried again, because a command that reads it locks it briefly.
const ATTEMPTS: usize = 20;
const RETRY: Duration = Duration::from_millis(10);

/// The PID file of this process. Dropping it removes the file, unless another process has replaced it.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
    /// The locked file, at `path` or to be moved there.
    file: File,
    /// Whether the file has the id of this process.
    is_written: bool,
    /// The path of the file until it replaces that of the old process of a handover.
    temporary: Option<PathBuf>,
}

/// Why a PID file cannot be used.
#[derive(Debug)]
pub enum PidFileError {
    /// The running process with this id owns it. `None` if it has not written its id yet.
    Owned(PathBuf, Option<u32>),
    /// The file has other contents.
    Foreign(PathBuf),
    /// There is no file.
    Missing(PathBuf),
    /// The process that wrote the file has ended.
    Stale(PathBuf),
    /// The file cannot be read or written.
    Io(PathBuf, io::Error),
}

// === impl PidFile ===

impl PidFile {
    /// Returns why a start cannot use the file at `path`. Creates nothing. The file of a running gateway is usable, so
    /// that its configuration can be checked.
    pub fn check(path: &Path) -> Result<(), PidFileError> {
        let failed = failed(path);
        match fs::metadata(path) {
            Ok(found) => {
                // Opening a pipe would wait.
                must_be_regular(&found).map_err(&failed)?;
                let needed = kernel::Access::READ_OK | kernel::Access::WRITE_OK;
                kernel::access(path, needed).map_err(|error| failed(error.into()))?;
                let file = File::open(path).map_err(&failed)?;
                read_id(&file, path).map(|_| ())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let writable = kernel::access(folder(path), kernel::Access::WRITE_OK);
                writable.map_err(|error| failed(error.into()))
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Locks the file at `path`, which is created or stale. Writes no id yet. With `predecessor`, the file may belong
    /// to the old process of a handover, which has this id.
    pub fn claim(path: &Path, predecessor: Option<u32>) -> Result<Self, PidFileError> {
        for _ in 0..ATTEMPTS {
            let file = open(path).map_err(failed(path))?;
            let owner = read_id(&file, path)?;
            match file.try_lock() {
                Ok(()) if is_at(&file, path) => {
                    // The id of a process that has ended can belong to another one now.
                    file.set_len(0).map_err(failed(path))?;
                    return Ok(Self {
                        path: path.to_owned(),
                        file,
                        is_written: false,
                        temporary: None,
                    });
                }
                Err(TryLockError::WouldBlock) if owner.is_some() && owner == predecessor => {
                    return Self::beside(path);
                }
                // The owner has ended since, or a command reads the file.
                Ok(()) | Err(TryLockError::WouldBlock) => thread::sleep(RETRY),
                Err(TryLockError::Error(error)) => return Err(failed(path)(error)),
            }
        }
        let owner = File::open(path).ok().and_then(|file| id_in(&file).ok()?);
        Err(PidFileError::Owned(path.to_owned(), owner))
    }

    /// Creates a locked file that will replace the one at `path`.
    fn beside(path: &Path) -> Result<Self, PidFileError> {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(format!(".{}", process::id()));
        let temporary = PathBuf::from(temporary);
        let file = open(&temporary).map_err(failed(&temporary))?;
        let claimed = Self {
            path: path.to_owned(),
            file,
            is_written: false,
            temporary: Some(temporary),
        };
        match claimed.file.try_lock() {
            Ok(()) => Ok(claimed),
            Err(error) => Err(failed(path)(error.into())),
        }
    }

    /// Writes the id of this process. Has no effect if the file already has it.
    pub fn publish(&mut self) -> io::Result<()> {
        let is_in_place = self.temporary.is_none() && is_at(&self.file, &self.path);
        if is_in_place && self.is_written {
            return Ok(());
        }
        if self.temporary.is_none() && !is_in_place {
            // The new process of a failed handover has replaced the file, or the file was removed.
            *self = match Self::beside(&self.path) {
                Ok(file) => file,
                Err(error) => return Err(io::Error::other(error.to_string())),
            };
        }
        self.file.set_len(0)?;
        self.file.rewind()?;
        let line = format!("{}\n", process::id());
        self.file.write_all(line.as_bytes())?;
        self.is_written = true;
        if let Some(temporary) = &self.temporary {
            fs::rename(temporary, &self.path)?;
            self.temporary = None;
        }
        Ok(())
    }

    /// Returns the id of the running process that owns the file at `path`.
    pub fn owner(path: &Path) -> Result<u32, PidFileError> {
        let file = File::open(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => PidFileError::Missing(path.to_owned()),
            _ => failed(path)(error),
        })?;
        let owner = read_id(&file, path)?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {
                owner.ok_or_else(|| PidFileError::Owned(path.to_owned(), None))
            }
            Ok(()) => Err(PidFileError::Stale(path.to_owned())),
            Err(TryLockError::Error(error)) => Err(failed(path)(error)),
        }
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = fs::remove_file(temporary);
        } else if is_at(&self.file, &self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Opens or creates a file. Never truncates it, because it may be another kind of file.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = options.mode(0o644).open(path)?;
    must_be_regular(&file.metadata()?)?;
    Ok(file)
}

fn must_be_regular(found: &Metadata) -> io::Result<()> {
    if found.is_file() {
        Ok(())
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}

fn folder(path: &Path) -> &Path {
    let folder = path.parent();
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Returns the id in a file. `None` if it is empty.
fn read_id(file: &File, path: &Path) -> Result<Option<u32>, PidFileError> {
    id_in(file).map_err(|error| match error.kind() {
        ErrorKind::InvalidData => PidFileError::Foreign(path.to_owned()),
        _ => failed(path)(error),
    })
}

fn id_in(file: &File) -> io::Result<Option<u32>> {
    let mut bytes = Vec::new();
    file.take(MAX_LENGTH + 1).read_to_end(&mut bytes)?;
    let text = str::from_utf8(&bytes).map_err(|_| ErrorKind::InvalidData)?;
    match text.trim() {
        "" => Ok(None),
        id if bytes.len() as u64 <= MAX_LENGTH => {
            let id = id.parse().map_err(|_| ErrorKind::InvalidData)?;
            Ok(Some(id))
        }
        _ => Err(ErrorKind::InvalidData.into()),
    }
}

/// Returns whether `file` is the one at `path`.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(own), Ok(found)) = (file.metadata(), fs::metadata(path)) else {
        return false;
    };
    (own.dev(), own.ino()) == (found.dev(), found.ino())
}

fn failed(path: &Path) -> impl Fn(io::Error) -> PidFileError + '_ {
    |error| PidFileError::Io(path.to_owned(), error)
}

// === impl PidFileError ===

impl PidFileError {
    /// Returns what to do about an error at the start.
    pub fn cure(&self) -> String {
        match self {
            Self::Owned(..) => {
                "stop that process, or give each gateway its own `pid_file`; to replace it without \
                 an interruption, send it SIGUSR2"
            }
            Self::Foreign(_) => "write another path, or remove the file",
            Self::Io(path, error) if error.kind() == ErrorKind::NotFound => {
                return format!("create the folder: `mkdir -p {}`", folder(path).display());
            }
            _ => "write the path of a file in a folder that the gateway's user can write to",
        }
        .to_owned()
    }
}

impl fmt::Display for PidFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owned(path, Some(id)) => write!(
                f,
                "another lockgate is running: process {id} owns the PID file `{}`",
                path.display()
            ),
            Self::Owned(path, None) => write!(
                f,
                "another lockgate is starting: it owns the PID file `{}`",
                path.display()
            ),
            Self::Foreign(path) => {
                write!(
                    f,
                    "`{}` is not a PID file: it has other contents",
                    path.display()
                )
            }
            Self::Missing(path) => write!(
                f,
                "the PID file `{}` does not exist: the gateway is not running, or it was started \
                 before `pid_file` was set or changed",
                path.display()
            ),
            Self::Stale(path) => write!(
                f,
                "the process that wrote the PID file `{}` has ended: the gateway is not running, or \
                 it was started before `pid_file` was set or changed",
                path.display()
            ),
            Self::Io(path, error) => {
                write!(f, "cannot use the PID file `{}`: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for PidFileError {}

#[cfg(test)]
mod tests;
