//! Claims, checks and handovers of a PID file.

use super::*;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lockgate-{name}-{}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("pid")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn id() -> String {
    format!("{}\n", process::id())
}

#[test]
fn a_file_exists_while_the_process_runs() {
    let folder = Folder::new("pid-runs");
    let path = folder.file();
    let mut own = PidFile::claim(&path, None).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
    own.publish().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), id());
    assert_eq!(PidFile::owner(&path).unwrap(), process::id());
    let other = PidFile::claim(&path, None).unwrap_err();
    assert!(matches!(other, PidFileError::Owned(_, Some(_))), "{other}");
    drop(own);
    assert!(!path.exists());
    let missing = PidFile::owner(&path).unwrap_err();
    assert!(matches!(missing, PidFileError::Missing(_)), "{missing}");
}

#[test]
fn a_stale_file_is_replaced_and_any_other_file_kept() {
    let folder = Folder::new("pid-stale");
    let path = folder.file();
    // The id of a running process that is not a gateway.
    fs::write(&path, "1\n").unwrap();
    let stale = PidFile::owner(&path).unwrap_err();
    assert!(matches!(stale, PidFileError::Stale(_)), "{stale}");
    let mut own = PidFile::claim(&path, None).unwrap();
    own.publish().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), id());
    drop(own);
    for text in ["[server]\n", "12 13", &"1".repeat(40), "-1"] {
        fs::write(&path, text).unwrap();
        let foreign = PidFile::claim(&path, None).unwrap_err();
        assert!(matches!(foreign, PidFileError::Foreign(_)), "{foreign}");
        let foreign = PidFile::check(&path).unwrap_err();
        assert!(matches!(foreign, PidFileError::Foreign(_)), "{foreign}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn a_check_reports_what_a_start_would_and_creates_nothing() {
    let folder = Folder::new("pid-check");
    let path = folder.file();
    PidFile::check(&path).unwrap();
    assert!(!path.exists());
    let own = PidFile::claim(&path, None).unwrap();
    PidFile::check(&path).unwrap();
    drop(own);
    let missing = path.join("run.pid");
    for wrong in [&*missing, &*folder.0, Path::new("/dev/null")] {
        let checked = PidFile::check(wrong).unwrap_err();
        let claimed = PidFile::claim(wrong, None).unwrap_err();
        assert!(matches!(claimed, PidFileError::Io(..)), "{claimed}");
        assert!(matches!(checked, PidFileError::Io(..)), "{checked}");
        assert!(!missing.exists());
    }
    let cure = PidFile::check(&missing).unwrap_err().cure();
    assert_eq!(
        cure,
        format!("create the folder: `mkdir -p {}`", path.display())
    );
}

#[test]
fn the_new_process_of_a_handover_replaces_the_file() {
    let folder = Folder::new("pid-handover");
    let path = folder.file();
    let mut old = PidFile::claim(&path, None).unwrap();
    old.publish().unwrap();
    let mut new = PidFile::claim(&path, Some(process::id())).unwrap();
    assert_eq!(PidFile::owner(&path).unwrap(), process::id());
    new.publish().unwrap();
    drop(old);
    assert_eq!(fs::read_to_string(&path).unwrap(), id());
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
    // A handover that fails late: the old process restores its file.
    let mut newer = PidFile::claim(&path, Some(process::id())).unwrap();
    newer.publish().unwrap();
    drop(newer);
    assert!(!path.exists());
    new.publish().unwrap();
    assert_eq!(PidFile::owner(&path).unwrap(), process::id());
}
