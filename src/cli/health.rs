//! `rankduel health`: ask a running server whether it is well, where there is no other HTTP client
//! (a container).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs as _};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::Args;
use reqwest::Url;

use super::CommandError;

/// What `rankduel health` can be told.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Exit codes: 0 it is well; 1 it is not, or does not answer; 2 called wrongly."
)]
pub(super) struct HealthArgs {
    /// The server's address, such as http://127.0.0.1:7171 [default: what it listens on, see
    /// --listen]
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// What the server on this machine was told to listen on; all addresses (0.0.0.0, [::]) are
    /// asked on loopback. Without effect beside --url
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        env = "RANKDUEL_LISTEN",
        default_value = "127.0.0.1:7171"
    )]
    listen: String,

    /// Ask whether it should be sent requests (/readyz: its database answers, and it is not
    /// shutting down), not only whether it lives (/livez)
    #[arg(long)]
    ready: bool,

    /// Seconds that it has to answer
    #[arg(
        long, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=3600)
    )]
    timeout_seconds: u32,
}

/// Ask, and print the answer if it is a good one.
pub(super) fn run(args: &HealthArgs) -> Result<(), CommandError> {
    let url = probe(args).map_err(CommandError::Usage)?;
    let within = Duration::from_secs(args.timeout_seconds.into());
    let answer = super::runtime()?.block_on(ask(url, within))?;
    println!("{}", answer.trim_end());
    Ok(())
}

/// The URL to ask.
fn probe(args: &HealthArgs) -> Result<Url, String> {
    let mut url = match &args.url {
        Some(url) => Url::parse(url)
            .ok()
            .filter(|url| url.scheme() == "http" && url.has_host())
            .ok_or_else(|| {
                format!(
                    "--url {url:?} is no address of a server; write it like http://127.0.0.1:7171"
                )
            })?,
        None => local(&args.listen)?,
    };
    url.set_path(if args.ready { "/readyz" } else { "/livez" });
    Ok(url)
}

/// Where a server on this machine that listens on `listen` is reached.
fn local(listen: &str) -> Result<Url, String> {
    let wrong = |why: &str| {
        format!(
            "--listen {listen:?} is no address that a server listens on ({why}); see `rankduel serve`"
        )
    };
    let mut address = listen
        .to_socket_addrs()
        .map_err(|error| wrong(&error.to_string()))?
        .next()
        .ok_or_else(|| wrong("the name has no address"))?;
    if address.port() == 0 {
        return Err(wrong("the port is not known; give --url"));
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
    // No proxy, whatever the environment says: the question is whether this very server answers.
    let client = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(within)
        .build()
        .context("the HTTP client cannot be set up")?;
    let answer =
        client.get(url.clone()).send().await.with_context(|| format!("{url} does not answer"))?;
    let status = answer.status();
    let body = answer.text().await.with_context(|| format!("{url} does not finish its answer"))?;
    if status == reqwest::StatusCode::OK {
        Ok(body)
    } else {
        Err(anyhow!("{url} answers {status}: {}", body.trim_end()))
    }
}
