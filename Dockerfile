# The image of the rankduel server. docs/install.md explains how to run it;
# scripts/check-container builds and tests it.
ARG RUST_VERSION=1.95
ARG DEBIAN_RELEASE=trixie

FROM rust:${RUST_VERSION}-slim-${DEBIAN_RELEASE} AS build
WORKDIR /build

# Build the dependencies and the library crates first, with an empty program: their layer then
# changes only with these files, not with every edit of the service. The build context has no
# benches, tests or examples of the service, so the manifest must not name them.
COPY .cargo .cargo
COPY Cargo.toml Cargo.lock build.rs ./
COPY crates crates
COPY fuzz fuzz
COPY migrations migrations
RUN awk '/^\[/ { left_out = /^\[\[(bench|test|example)\]\]/ } !left_out' Cargo.toml > manifest && mv manifest Cargo.toml \
    && mkdir src && touch src/lib.rs && echo 'fn main() {}' > src/main.rs \
    && cargo build --profile dist --locked --features otel

# COPY keeps file times, and cargo compares times. Touch the sources, so that they are newer than
# the build of the empty program.
COPY src src
ARG REVISION=
RUN touch build.rs src/lib.rs src/main.rs \
    && RANKDUEL_COMMIT=$REVISION cargo build --profile dist --locked --features otel \
    && install -D target/dist/rankduel /out/usr/local/bin/rankduel \
    && install -d /out/var/lib/rankduel

FROM debian:${DEBIAN_RELEASE}-slim

# The publisher of an image sets these; scripts/check-container sets them too.
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="rankduel" \
      org.opencontainers.image.description="HTTP service for online ranker evaluation with dueling bandits" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

# SQLite is part of the program, which needs only the C library; a webhook may need certificates.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/usr/local/bin/rankduel /usr/local/bin/rankduel
COPY NOTICE LICENSE-MIT LICENSE-APACHE /usr/share/doc/rankduel/
# A new volume gets this folder's owner.
COPY --from=build --chown=10001:10001 /out/var/lib/rankduel /var/lib/rankduel

ENV RANKDUEL_LISTEN=0.0.0.0:7171 \
    RANKDUEL_DATABASE_URL=sqlite:///var/lib/rankduel/rankduel.db

# A number, so that an orchestrator can see that it is not root.
USER 10001:10001
WORKDIR /var/lib/rankduel
VOLUME ["/var/lib/rankduel"]
EXPOSE 7171
STOPSIGNAL SIGTERM
# Liveness, not readiness: restarting the server does not repair its database.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["rankduel", "health"]
ENTRYPOINT ["rankduel"]
CMD ["serve"]
