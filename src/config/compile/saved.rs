//! `store.snapshot`: checks the path of the counter snapshot. A missing folder is a warning, because the gateway
//! can run without saving. An existing path that is not a file, such as a device, is an error.

use std::path::{Path, PathBuf};

use super::CompileContext;
use crate::config::{LintCode, Spanned};
use crate::store::persist::SnapshotFile;

/// Reports a path to which no file can be written.
pub(super) fn check(file: &Spanned<Option<PathBuf>>, cx: &mut CompileContext<'_>) {
    let Some(path) = file.value.as_ref().map(|path| cx.resolve(path)) else {
        return;
    };
    let saved = SnapshotFile::new(&path);
    let folder = saved.path().parent().filter(|it| *it != Path::new(""));
    let (shown, span) = (path.display(), file.span.clone());
    if let Some(what) = saved.kind_of_obstacle() {
        let message = format!("cannot save counters: `{shown}` is a {what}");
        let wrong = cx.diagnostics.error(span, message);
        wrong.help(match what {
            "folder" => format!("write the path of a file in it, such as `{shown}/counters`"),
            _ => "write the path of a file, or remove the setting to save nothing".to_owned(),
        });
    } else if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        let folder = folder.display();
        let message = format!("cannot save counters: the folder `{folder}` does not exist");
        let wrong = cx
            .diagnostics
            .warning(LintCode::UnsavedCounters, span, message);
        wrong.help(format!("create it: `mkdir -p {folder}`"));
    }
}
