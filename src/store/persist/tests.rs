//! Snapshots in real files.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::rules::plan::{KeyStatus, StepOp};
use crate::store::StoreBounds;
use crate::store::fixture::{Rule, at, banned, rules_named};

/// A folder that goes with this value.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("lockgate-store-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> SnapshotFile {
        SnapshotFile::new(&self.0.join("counters"))
    }

    fn names(&self) -> Vec<OsString> {
        let entries = fs::read_dir(&self.0).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_file_is_kept_by_one_at_a_time() {
    let folder = Folder::new();
    let first = folder.file().hold().unwrap();
    let refused = folder.file().hold().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ResourceBusy);
    assert!(refused.to_string().contains("another process"), "{refused}");
    // Another file in this folder can be locked.
    SnapshotFile::new(&folder.0.join("others")).hold().unwrap();
    drop(first);
    folder.file().hold().unwrap();
}

fn store() -> (Store, Rule) {
    let store = Store::memory(StoreBounds::keys(1_000));
    let rule = Rule::ban(&store, "r", 0, 600);
    (store, rule)
}

fn rules() -> Vec<RegisteredRule> {
    rules_named(&["r", "count"])
}

/// A store in which `key` is banned.
async fn banning(key: &str) -> Store {
    let (store, rule) = store();
    rule.admit(&store, key, 0).await;
    store
}

/// The keys that are banned after a restart.
async fn restarted(file: &SnapshotFile) -> Option<[bool; 2]> {
    let (mut store, rule) = store();
    let restored = file.load(&mut store, &rules(), at(1)).unwrap()?;
    assert_eq!(restored.bans, store.bans(at(1)).len());
    let mut found = [false; 2];
    for (found, key) in found.iter_mut().zip(["old", "new"]) {
        let status = rule.ask(&store, StepOp::CheckBan, key, 1).await.status;
        *found = status == banned(600, false);
        assert!(*found || status == KeyStatus::Within);
    }
    Some(found)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[tokio::test]
async fn a_file_is_replaced_whole_and_is_private() {
    let folder = Folder::new();
    let file = folder.file();
    assert_eq!(restarted(&file).await, None);
    file.save(&banning("old").await, &rules(), at(0)).unwrap();
    assert_eq!(restarted(&file).await, Some([true, false]));
    assert_eq!(mode(file.path()), 0o600);
    // However the file was opened up, the next one is private again.
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).unwrap();
    file.save(&banning("new").await, &rules(), at(0)).unwrap();
    assert_eq!(restarted(&file).await, Some([false, true]));
    assert_eq!(mode(file.path()), 0o600);
    assert_eq!(folder.names(), ["counters"]);
}

#[tokio::test]
async fn what_a_killed_gateway_left_is_no_hindrance() {
    let folder = Folder::new();
    let file = folder.file();
    file.save(&banning("old").await, &rules(), at(0)).unwrap();
    let whole = fs::read(file.path()).unwrap();
    for left in [0, 1, 30, whole.len() - 1, whole.len()] {
        let unfinished = folder.0.join("counters.new");
        fs::write(&unfinished, &whole[..left]).unwrap();
        fs::set_permissions(&unfinished, fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(restarted(&file).await, Some([true, false]));
        file.save(&banning("old").await, &rules(), at(0)).unwrap();
        assert_eq!(folder.names(), ["counters"]);
        assert_eq!(mode(file.path()), 0o600);
    }
}

#[tokio::test]
async fn a_link_in_the_way_is_not_followed() {
    let folder = Folder::new();
    let victim = folder.0.join("victim");
    fs::write(&victim, "mine").unwrap();
    symlink(&victim, folder.0.join("counters.new")).unwrap();
    let file = folder.file();
    file.save(&banning("new").await, &rules(), at(0)).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"mine");
    assert_eq!(restarted(&file).await, Some([false, true]));
}

#[tokio::test]
async fn where_a_link_leads_to_is_written() {
    let folder = Folder::new();
    let there = folder.0.join("there");
    fs::create_dir(&there).unwrap();
    symlink("second", folder.0.join("counters")).unwrap();
    symlink("there/counters", folder.0.join("second")).unwrap();
    for key in ["old", "new"] {
        let file = folder.file();
        let _hold = file.hold().unwrap();
        assert_eq!(file.path(), there.join("counters"));
        file.save(&banning(key).await, &rules(), at(0)).unwrap();
        // By whatever name, it is kept by one.
        assert!(SnapshotFile::new(&there.join("counters")).hold().is_err());
    }
    let link = fs::symlink_metadata(folder.0.join("counters")).unwrap();
    assert!(link.is_symlink());
    assert_eq!(restarted(&folder.file()).await, Some([false, true]));
}

#[tokio::test]
async fn what_is_no_file_is_never_replaced() {
    let folder = Folder::new();
    let path = folder.0.join("counters");
    let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
    for name in ["counters", "link"] {
        if name == "link" {
            symlink(&path, folder.0.join(name)).unwrap();
        }
        let file = SnapshotFile::new(&folder.0.join(name));
        assert_eq!(file.kind_of_obstacle(), Some("socket"));
        let said = file.probe().unwrap_err().to_string();
        assert_eq!(said, "it is a socket, which is left alone");
        let said = file
            .save(&banning("new").await, &rules(), at(0))
            .unwrap_err();
        assert_eq!(said.to_string(), "it is a socket, which is left alone");
        assert!(fs::metadata(&path).unwrap().file_type().is_socket());
    }
}

#[test]
fn links_in_a_circle_lead_nowhere() {
    let folder = Folder::new();
    symlink("counters", folder.0.join("counters")).unwrap();
    assert_eq!(folder.file().kind_of_obstacle(), Some("link"));
    assert!(folder.file().probe().is_err());
}

#[tokio::test]
async fn what_cannot_be_written_leaves_the_file_before() {
    let folder = Folder::new();
    let file = folder.file();
    file.save(&banning("old").await, &rules(), at(0)).unwrap();
    file.probe().unwrap();
    fs::create_dir(folder.0.join("counters.new")).unwrap();
    assert!(file.probe().is_err());
    assert!(file.save(&banning("new").await, &rules(), at(0)).is_err());
    assert_eq!(restarted(&file).await, Some([true, false]));
    let nowhere = SnapshotFile::new(&folder.0.join("no folder/counters"));
    assert!(nowhere.probe().is_err());
    assert!(
        nowhere
            .save(&banning("new").await, &rules(), at(0))
            .is_err()
    );
}

#[tokio::test]
async fn a_damaged_file_changes_nothing() {
    let folder = Folder::new();
    let file = folder.file();
    let (store, rule) = store();
    rule.admit(&store, "old", 0).await;
    let count = Rule::throttle(&store, "count", 5);
    count.admit(&store, "old", 0).await;
    file.save(&store, &rules(), at(0)).unwrap();
    let whole = fs::read(file.path()).unwrap();
    for place in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x10;
        for damaged in [&damaged[..], &whole[..place]] {
            fs::write(file.path(), damaged).unwrap();
            let (mut store, _) = self::store();
            let damage = file.load(&mut store, &rules(), at(1)).unwrap_err();
            assert!(!damage.to_string().is_empty());
            assert_eq!(store.bans(at(1)), []);
        }
    }
}

#[test]
fn a_folder_and_a_pipe_are_no_snapshots() {
    let folder = Folder::new();
    let file = folder.file();
    fs::create_dir(file.path()).unwrap();
    let said = file
        .load(&mut store().0, &rules(), at(0))
        .unwrap_err()
        .to_string();
    assert_eq!(said, "it cannot be read: it is no file");
    fs::remove_dir(file.path()).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(file.path())
        .status();
    assert!(made.unwrap().success());
    let again = file
        .load(&mut store().0, &rules(), at(0))
        .unwrap_err()
        .to_string();
    assert_eq!(again, said);
}
