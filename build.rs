//! Unpacks the Swagger UI that `/docs` serves.

use std::error::Error;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::GzEncoder;
use rawzip::{CompressionMethod, ZipArchive};
use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;

/// The files of Swagger UI that the API reference loads.
const SWAGGER_UI_FILES: [&str; 2] = ["swagger-ui-bundle.js", "swagger-ui.css"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    for name in SWAGGER_UI_FILES {
        unpack(name, &out).map_err(|error| format!("Swagger UI: {name}: {error}"))?;
    }
    Ok(())
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
