//! `rankduel health`: checks a running server. It is for places without another HTTP client, such
//! as a container.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs as _};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::Args;
use reqwest::Url;

use super::output::print;
use super::{CommandError, runtime};

/// The arguments of `rankduel health`.
#[derive(Debug, Args)]
#[command(after_long_help = "Exit codes: 0 healthy; 1 unhealthy or no answer; 2 wrong call.")]
pub(super) struct HealthArgs {
    /// The URL of the server, such as http://127.0.0.1:7171 [default: the address of --listen]
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// The listening address of a server on this machine. For all addresses (0.0.0.0, [::]), the
    /// command uses loopback. Ignored with --url
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        env = "RANKDUEL_LISTEN",
        default_value = "127.0.0.1:7171"
    )]
    listen: String,

    /// Check whether the server is ready for requests (/readyz: it can issue duels, and it is not
    /// shutting down), not only whether it is alive (/livez)
    #[arg(long)]
    ready: bool,

    /// Timeout of the answer in seconds
    #[arg(
        long, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=3600)
    )]
    timeout_seconds: u32,
}

/// Runs the command: prints the answer of a healthy server.
pub(super) fn run(args: &HealthArgs) -> Result<(), CommandError> {
    let url = probe(args).map_err(CommandError::Usage)?;
    let within = Duration::from_secs(args.timeout_seconds.into());
    let answer = runtime()?.block_on(ask(url, within))?;
    print(format!("{}\n", answer.trim_end()))
}

/// The URL of the check.
fn probe(args: &HealthArgs) -> Result<Url, String> {
    let mut url = match &args.url {
        Some(url) => Url::parse(url)
            .ok()
            .filter(|url| url.scheme() == "http" && url.has_host())
            .ok_or_else(|| {
                format!(
                    "--url {url:?} is not the URL of a server; the form is http://127.0.0.1:7171"
                )
            })?,
        None => local(&args.listen)?,
    };
    url.set_path(if args.ready { "/readyz" } else { "/livez" });
    Ok(url)
}

/// The URL of a server on this machine that listens on `listen`.
fn local(listen: &str) -> Result<Url, String> {
    let wrong = |why: &str| {
        format!("--listen {listen:?} is not a listening address ({why}); see `rankduel serve`")
    };
    let mut address = listen
        .to_socket_addrs()
        .map_err(|error| wrong(&error.to_string()))?
        .next()
        .ok_or_else(|| wrong("the name has no address"))?;
    if address.port() == 0 {
        return Err(wrong("the port is unknown; use --url"));
    }
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    Url::parse(&format!("http://{address}")).map_err(|error| wrong(&error.to_string()))
}

/// The body of the answer, if its status is 200.
async fn ask(url: Url, within: Duration) -> anyhow::Result<String> {
    // Ignore a proxy from the environment: the check is for this server itself.
    let client = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(within)
        .build()
        .context("the HTTP client cannot be set up")?;
    let answer =
        client.get(url.clone()).send().await.with_context(|| format!("{url} does not answer"))?;
    let status = answer.status();
    let body =
        answer.text().await.with_context(|| format!("{url} does not complete its answer"))?;
    if status == reqwest::StatusCode::OK {
        Ok(body)
    } else {
        Err(anyhow!("{url} answers {status}: {}", body.trim_end()))
    }
}
