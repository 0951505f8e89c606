//! The HTTP client for servers of others.

use std::sync::Arc;

use hyper::Uri;
use hyper::body::Body;
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

use crate::service::error::ServiceError;

/// It follows neither a redirect nor a proxy: the caller names the receiver.
pub type HttpClient<B> = Client<HttpsConnector<HttpConnector>, B>;

/// A client for the server of this address.
pub fn http_client<B>(url: &Uri) -> Result<HttpClient<B>, ServiceError>
where
    B: Body<Data: Send> + Send,
{
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls(url)?)
        .https_or_http()
        .enable_http1()
        .build();
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}

/// The configuration of TLS. The root certificates of the system are only read for an `https`
/// address.
fn tls(url: &Uri) -> Result<ClientConfig, ServiceError> {
    let failed = |why: String| ServiceError::internal(why);
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| failed(error.to_string()))?;
    let builder = match url.scheme_str() {
        Some("https") => builder.with_native_roots().map_err(|error| {
            failed(format!(
                "an https:// address needs root certificates, and this system has none ({error}): \
                 install ca-certificates, or name a file of them in SSL_CERT_FILE"
            ))
        })?,
        _ => builder.with_root_certificates(RootCertStore::empty()),
    };
    Ok(builder.with_no_client_auth())
}
