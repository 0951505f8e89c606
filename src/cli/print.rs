//! Plots for print: PDF and PNG beside each SVG, by rsvg-convert.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, anyhow};

/// 300 dots per inch: an SVG has 96 pixels per inch.
const PNG_ZOOM: &str = "3.125";

/// The program that converts plots.
#[derive(Debug)]
pub(super) struct Printer {
    program: PathBuf,
}

impl Printer {
    /// Finds the program. Commands call this before their work, so that a missing program does not
    /// lose any results.
    pub fn find() -> anyhow::Result<Self> {
        let program = PathBuf::from("rsvg-convert");
        let version = Command::new(&program).arg("--version").output();
        match version {
            Ok(output) if output.status.success() => Ok(Self { program }),
            _ => Err(anyhow!(
                "--print needs the program `rsvg-convert` (Debian: librsvg2-bin; Homebrew: librsvg)"
            )),
        }
    }

    /// Converts `STEM.svg` to `STEM.pdf` and `STEM.png`.
    pub fn print(&self, stem: &Path) -> anyhow::Result<()> {
        self.convert(stem, "pdf", &["--format=pdf"])?;
        self.convert(stem, "png", &["--format=png", "--zoom", PNG_ZOOM])
    }

    fn convert(&self, stem: &Path, ending: &str, options: &[&str]) -> anyhow::Result<()> {
        let with = |ending: &str| {
            let mut name = stem.as_os_str().to_owned();
            name.push(format!(".{ending}"));
            PathBuf::from(name)
        };
        let (from, to) = (with("svg"), with(ending));
        let output = Command::new(&self.program)
            .args(options)
            .arg("--output")
            .arg(&to)
            .arg(&from)
            .output()
            .context("rsvg-convert cannot be started")?;
        if output.status.success() {
            return Ok(());
        }
        let reason = String::from_utf8_lossy(&output.stderr);
        Err(anyhow!("rsvg-convert cannot convert `{}`: {}", from.display(), reason.trim()))
    }
}
