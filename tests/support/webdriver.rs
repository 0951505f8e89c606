//! A headless Chromium, driven through WebDriver (<https://www.w3.org/TR/webdriver2/>). Implements
//! only what the page tests need. `scripts/install-packages` installs both programs.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::client::PATIENCE;

/// A browser with one window, closed when it is dropped.
pub struct Browser {
    driver: Child,
    http: reqwest::Client,
    session: String,
    _profile: TempDir,
}

impl Browser {
    /// Start a browser with a new profile.
    pub async fn start() -> Self {
        let mut driver = Command::new("chromedriver")
            .args(["--port=0", "--allowed-ips=127.0.0.1"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!(
                    "chromedriver does not start ({error}): scripts/install-packages installs it"
                )
            });
        let stdout = driver.stdout.take().expect("its standard output");
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        let port = lines
            .find_map(|line| {
                let port = line.split("on port ").nth(1)?;
                port.trim_end_matches('.').parse::<u16>().ok().filter(|port| *port != 0)
            })
            .expect("chromedriver's port");
        // Drain the output so that the pipe does not fill.
        std::thread::spawn(move || lines.for_each(drop));
        let http =
            reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().expect("a client");
        let profile = tempfile::tempdir().expect("a temporary folder");
        let mut arguments = vec![
            "--headless".to_owned(),
            "--disable-gpu".into(),
            "--disable-background-networking".into(),
            "--disable-component-update".into(),
            "--disable-sync".into(),
            "--disable-dev-shm-usage".into(),
            "--no-first-run".into(),
            "--force-device-scale-factor=1".into(),
            "--hide-scrollbars".into(),
            format!("--user-data-dir={}", profile.path().display()),
        ];
        // Chromium refuses to run in its sandbox as root.
        let root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
        arguments.extend(root.then(|| "--no-sandbox".to_owned()));
        let capabilities = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let base = format!("http://127.0.0.1:{port}/session");
        let mut browser = Self { driver, http, session: base.clone(), _profile: profile };
        let session = browser.send(reqwest::Method::POST, &base, Some(&capabilities)).await;
        browser.session = format!("{base}/{}", session["sessionId"].as_str().expect("a session"));
        browser
    }

    async fn send(&self, method: reqwest::Method, url: &str, body: Option<&Value>) -> Value {
        let mut request = self.http.request(method, url);
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await.expect("an answer of chromedriver");
        let status = answer.status();
        let mut answer: Value = answer.json().await.expect("JSON");
        assert!(status.is_success(), "{url}: {}", answer["value"]["message"]);
        answer["value"].take()
    }

    async fn post(&self, command: &str, body: Value) -> Value {
        self.send(reqwest::Method::POST, &format!("{}/{command}", self.session), Some(&body)).await
    }

    /// Open a URL and wait until the page has loaded.
    pub async fn open(&self, url: &str) {
        self.post("url", json!({"url": url})).await;
    }

    /// Run a function body in the page and return its result.
    pub async fn run(&self, script: &str) -> Value {
        self.post("execute/sync", json!({"script": script, "args": []})).await
    }

    /// The text of the first element that matches a selector.
    pub async fn text(&self, selector: &str) -> String {
        let script = format!("return document.querySelector({}).textContent", json!(selector));
        self.run(&script).await.as_str().expect("a text").to_owned()
    }

    /// Type into the focused element.
    pub async fn press(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})]
            })
            .collect();
        self.post(
            "actions",
            json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}),
        )
        .await;
    }

    /// Run a command of the Chrome DevTools protocol.
    pub async fn devtools(&self, command: &str, parameters: Value) -> Value {
        self.post("goog/cdp/execute", json!({"cmd": command, "params": parameters})).await
    }

    /// Set the size of the page and the theme (`light` or `dark`).
    pub async fn appear(&self, width: u32, height: u32, theme: &str) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": theme}]});
        self.devtools("Emulation.setEmulatedMedia", features).await;
    }

    /// The whole page as a PNG.
    pub async fn picture(&self) -> Vec<u8> {
        self.top(u64::MAX).await
    }

    /// The page as a PNG, down to a height in pixels.
    pub async fn top(&self, height: u64) -> Vec<u8> {
        let size = self
            .run("return [document.documentElement.clientWidth, document.documentElement.scrollHeight]")
            .await;
        let height = size[1].as_u64().expect("a height").min(height);
        let clip = json!({"x": 0, "y": 0, "width": size[0], "height": height, "scale": 1});
        let parameters = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
        let taken = self.devtools("Page.captureScreenshot", parameters).await;
        STANDARD.decode(taken["data"].as_str().expect("a picture")).expect("base64")
    }

    /// The console messages since the last call: errors, warnings, violations of the content
    /// security policy, …
    pub async fn console(&self) -> Vec<String> {
        let log = self.post("se/log", json!({"type": "browser"})).await;
        log.as_array().expect("a log").iter().map(|line| line["message"].to_string()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // A failing test may be shutting down its own runtime, so use a separate one.
        let session = self.session.clone();
        let ending = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let http = reqwest::Client::builder()
                    .no_proxy()
                    .timeout(PATIENCE)
                    .build()
                    .expect("a client");
                drop(http.delete(&session).send().await);
            });
        });
        drop(ending.join());
        // Both fail if it has already ended.
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
