//! Unpacks the Swagger UI that `/docs` serves, and finds out what `--version` says of the build.

use std::error::Error;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::GzEncoder;
use rawzip::{CompressionMethod, ZipArchive};
use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;

/// The files of Swagger UI that the API reference loads.
const SWAGGER_UI_FILES: [&str; 2] = ["swagger-ui-bundle.js", "swagger-ui.css"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=BUILD_COMMIT={}", commit());
    println!("cargo:rustc-env=BUILD_FEATURES={}", features());
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    for name in SWAGGER_UI_FILES {
        unpack(name, &out).map_err(|error| format!("Swagger UI: {name}: {error}"))?;
    }
    Ok(())
}

/// The commit that is built: the variable of `scripts/release` and the Dockerfile, else that of the
/// repository. A debug build does not ask, so that a commit does not build the service again.
fn commit() -> String {
    println!("cargo:rerun-if-env-changed=RANKDUEL_COMMIT");
    let given = std::env::var("RANKDUEL_COMMIT").ok().filter(|commit| !commit.is_empty());
    given.or_else(commit_of_repository).unwrap_or_else(|| "unknown".into())
}

/// None in a debug build, and for sources without their repository or without git.
fn commit_of_repository() -> Option<String> {
    if std::env::var("PROFILE").ok()? == "debug" || !Path::new(".git").exists() {
        return None;
    }
    println!("cargo:rerun-if-changed=.git/logs/HEAD");
    let mut git = Command::new("git");
    let output = git.args(["rev-parse", "--short=12", "HEAD"]).output().ok()?;
    let commit = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| commit.trim().to_owned())
}

/// The features of the build, or `none`.
fn features() -> &'static str {
    match std::env::var_os("CARGO_FEATURE_OTEL") {
        Some(_) => "otel",
        None => "none",
    }
}

/// Write a file of Swagger UI to `out`, as it is and as `NAME.gz`.
fn unpack(name: &str, out: &Path) -> Result<(), Box<dyn Error>> {
    let archive = ZipArchive::from_slice(SWAGGER_UI_VENDORED)?;
    let mut entries = archive.entries();
    let entry = loop {
        let entry = entries.next_entry()?.ok_or("not in the archive")?;
        let path = entry.file_path().try_normalize()?;
        // The top folder has the version in its name.
        if path.as_str().split_once('/').and_then(|(_, path)| path.strip_prefix("dist/"))
            == Some(name)
        {
            break entry;
        }
    };
    if entry.compression_method() != CompressionMethod::DEFLATE {
        return Err("not compressed with DEFLATE".into());
    }
    let entry = archive.get_entry(entry.wayfinder())?;
    let mut file = Vec::new();
    entry.verifying_reader(DeflateDecoder::new(entry.data())).read_to_end(&mut file)?;
    fs::write(out.join(name), &file)?;
    let mut compressed =
        GzEncoder::new(File::create(out.join(format!("{name}.gz")))?, Compression::best());
    compressed.write_all(&file)?;
    compressed.finish()?;
    Ok(())
}
