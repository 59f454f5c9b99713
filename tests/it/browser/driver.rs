//! A WebDriver client (W3C WebDriver) for headless Chromium.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::Element;
use crate::harness::{Folder, wait_until};

/// One browser at a time: several would only slow each other down.
static BROWSER: Mutex<()> = Mutex::new(());
/// No command takes longer.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The arguments of every browser. The certificates of tests are self-signed.
const ARGUMENTS: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--ignore-certificate-errors",
];

/// The name of an element in the protocol.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A browser with one window; it ends with this value.
pub struct Browser {
    port: u16,
    session: String,
    driver: Child,
    /// Removed after the browser has ended.
    _profile: Folder,
    _only: MutexGuard<'static, ()>,
}

impl Browser {
    /// A browser as most people have it.
    pub fn start() -> Self {
        Self::with(&[], json!({}))
    }

    /// A browser with more arguments and with these preferences.
    pub fn with(arguments: &[&str], preferences: Value) -> Self {
        let only = BROWSER.lock().unwrap_or_else(PoisonError::into_inner);
        let (driver, port) = start_driver();
        let profile = Folder::new();
        let data = format!("--user-data-dir={}", profile.path().display());
        let mut all = ARGUMENTS.to_vec();
        all.extend([data.as_str()]);
        all.extend(arguments);
        let options = json!({"args": all, "prefs": preferences});
        let capabilities = json!({
            "alwaysMatch": {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}},
        });
        let mut browser = Self {
            port,
            session: String::new(),
            driver,
            _profile: profile,
            _only: only,
        };
        let made = browser.call("POST", "/session", &json!({"capabilities": capabilities}));
        browser.session = format!("/session/{}", made["sessionId"].as_str().unwrap());
        browser
    }

    /// Opens a page and waits until it is loaded.
    pub fn open(&self, url: &str) {
        self.post("/url", &json!({"url": url}));
    }

    /// The address of the page.
    pub fn url(&self) -> String {
        self.get("/url").as_str().unwrap().to_owned()
    }

    /// The value of a script's `return`.
    pub fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({"script": script, "args": []}))
    }

    /// What an async function body returns, once it has.
    pub fn wait_for(&self, body: &str) -> Value {
        let script = format!(
            "const done = arguments[0]; (async () => {{ {body} }})().then(done, (e) => done('failed: ' + e));"
        );
        self.post("/execute/async", &json!({"script": script, "args": []}))
    }

    /// The first element that matches a CSS selector. `None`: there is none.
    pub fn find(&self, css: &str) -> Option<Element<'_>> {
        let query = json!({"using": "css selector", "value": css});
        let found = self.post("/elements", &query);
        let id = found.get(0)?[ELEMENT].as_str()?.to_owned();
        Some(Element::new(self, id))
    }

    /// The element that has the focus.
    pub fn focused(&self) -> Element<'_> {
        let found = self.get("/element/active");
        Element::new(self, found[ELEMENT].as_str().unwrap().to_owned())
    }

    /// The visible text of the page. Empty while the page changes.
    pub fn text(&self) -> String {
        let body = self.run("return document.body ? document.body.innerText : ''");
        body.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the page shows `text`.
    #[track_caller]
    pub fn wait_for_text(&self, text: &str) {
        wait_until(&format!("the page shows {text:?}"), || {
            self.text().contains(text)
        });
    }

    /// Presses a key, for example `"\u{e007}"` for Enter.
    pub fn press(&self, key: &str) {
        let actions = json!([{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]);
        self.post(
            "/actions",
            &json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}),
        );
    }

    /// Forgets the cookies of this page.
    pub fn delete_cookies(&self) {
        self.call("DELETE", &format!("{}/cookie", self.session), &Value::Null);
    }

    /// The cookies of this page.
    pub fn cookies(&self) -> Value {
        self.get("/cookie")
    }

    /// A command of the DevTools protocol.
    pub fn devtools(&self, command: &str, parameters: Value) -> Value {
        self.post(
            "/goog/cdp/execute",
            &json!({"cmd": command, "params": parameters}),
        )
    }

    /// The errors and warnings of the console since the last call, and those of the browser about the page.
    pub fn console_problems(&self) -> Vec<String> {
        let entries = self.post("/se/log", &json!({"type": "browser"}));
        let entries = entries.as_array().unwrap().iter();
        let problems =
            entries.filter(|entry| entry["level"] == "SEVERE" || entry["level"] == "WARNING");
        problems.map(|entry| entry["message"].to_string()).collect()
    }

    /// Saves what the window shows as `target/screenshots/NAME.png`, and returns where that is.
    pub fn save_screenshot(&self, name: &str) -> PathBuf {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/screenshots");
        std::fs::create_dir_all(&folder).unwrap();
        let encoded = self.get("/screenshot");
        let png = BASE64_STANDARD.decode(encoded.as_str().unwrap()).unwrap();
        let path = folder.join(format!("{name}.png"));
        std::fs::write(&path, png).unwrap();
        path
    }

    pub(super) fn get(&self, path: &str) -> Value {
        self.call("GET", &format!("{}{path}", self.session), &Value::Null)
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Value {
        self.call("POST", &format!("{}{path}", self.session), body)
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let (status, text) = exchange(self.port, method, path, &body).unwrap();
        assert_eq!(status, 200, "{method} {path}: {text}");
        let mut json: Value = serde_json::from_str(&text).unwrap();
        json["value"].take()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            // Ends the browser.
            let _ = exchange(self.port, "DELETE", &self.session, "");
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Sends a command to the driver, and returns the status and the body of its answer.
fn exchange(port: u16, method: &str, path: &str, body: &str) -> std::io::Result<(u16, String)> {
    let mut tcp = TcpStream::connect(("127.0.0.1", port))?;
    tcp.set_read_timeout(Some(TIMEOUT))?;
    let length = body.len();
    write!(
        tcp,
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )?;
    // The driver keeps the connection open, so the length says where the answer ends.
    let mut reader = BufReader::new(tcp);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = String::from_utf8_lossy(&body).into_owned();
    Ok((status.unwrap_or(0), body))
}

/// Starts the driver on a free port.
fn start_driver() -> (Child, u16) {
    // It ends if another program takes the port, which is free for IPv4 and IPv6 at different times.
    let started = (0..5).find_map(|_| try_start_driver());
    started.expect("chromedriver names its port")
}

/// Starts the driver. `None` if it ends before it names its port.
fn try_start_driver() -> Option<(Child, u16)> {
    let mut command = Command::new("chromedriver");
    let started = command
        .arg("--port=0")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut driver = started.expect("chromedriver: install the Debian package chromium-driver");
    let lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    let mut ports = lines.map_while(Result::ok).filter_map(|line| {
        let (_, port) = line.split_once("started successfully on port ")?;
        port.trim_end_matches('.').parse().ok()
    });
    let Some(port) = ports.next() else {
        _ = driver.kill();
        _ = driver.wait();
        return None;
    };
    Some((driver, port))
}
