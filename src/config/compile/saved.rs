//! The file that counters are saved in. It is only looked at: a gateway whose counters cannot be
//! saved runs all the same. Where something is that is no file, such as a device, it does not run.

use std::path::{Path, PathBuf};

use super::CompileContext;
use crate::config::{LintCode, Spanned};
use crate::store::persist::SnapshotFile;

/// Reports a path at which no file can be written.
pub(super) fn check(file: &Spanned<Option<PathBuf>>, cx: &mut CompileContext<'_>) {
    let Some(path) = file.value.as_ref().map(|path| cx.resolve(path)) else {
        return;
    };
    let saved = SnapshotFile::new(&path);
    let folder = saved.path().parent().filter(|it| *it != Path::new(""));
    let (shown, span) = (path.display(), file.span.clone());
    if let Some(what) = saved.kind_of_obstacle() {
        let message = format!("counters cannot be saved here: `{shown}` is a {what}");
        let wrong = cx.diagnostics.error(span, message);
        wrong.help(match what {
            "folder" => format!("name a file in it, such as `{shown}/counters`"),
            _ => "name a file, or leave the key out to save nothing".to_owned(),
        });
    } else if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        let folder = folder.display();
        let message = format!("counters cannot be saved here: there is no folder `{folder}`");
        let wrong = cx
            .diagnostics
            .warning(LintCode::UnsavedCounters, span, message);
        wrong.help(format!("make it: `mkdir -p {folder}`"));
    }
}
