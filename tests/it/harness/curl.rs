//! Requests with curl.

use std::path::Path;
use std::process::Command;

/// Posts a file over HTTP/1.1, and sends its body only after 100 Continue. Returns the status and the bytes sent, such as
/// `200 913`. A client that waits in vain fails: it waits longer than anything in a test takes.
pub fn upload_with_curl(url: &str, file: &Path) -> String {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--insecure", "--max-time", "30", "--http1.1"]);
    curl.args(["--expect100-timeout", "60"]);
    curl.args(["--header", "expect: 100-continue"]);
    curl.args(["--write-out", "%{http_code} %{size_upload}"]);
    curl.args(["--output", "/dev/null"]);
    curl.arg("--data-binary")
        .arg(format!("@{}", file.display()));
    let output = curl.arg(url).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}
