# The image of the rankduel server. docs/container.md says how to run it; scripts/check-container builds and tries it.
ARG RUST_VERSION=1.95
ARG DEBIAN_RELEASE=trixie

FROM rust:${RUST_VERSION}-slim-${DEBIAN_RELEASE} AS build
WORKDIR /build

# The dependencies first, under an empty program: their layer changes with these files alone, not with every edit.
# Benches, tests and examples stay out of the build context, so the manifest must not name them.
COPY Cargo.toml Cargo.lock build.rs ./
RUN awk '/^\[/ { left_out = /^\[\[(bench|test|example)\]\]/ } !left_out' Cargo.toml > manifest && mv manifest Cargo.toml \
    && mkdir src migrations && touch src/lib.rs && echo 'fn main() {}' > src/main.rs \
    && cargo build --release --locked

# COPY keeps the files' times, and cargo goes by time: what it built from the empty program must look older.
COPY migrations migrations
COPY src src
RUN touch build.rs src/lib.rs src/main.rs \
    && cargo build --release --locked \
    && install -D target/release/rankduel /out/usr/local/bin/rankduel \
    && install -d /out/var/lib/rankduel

FROM debian:${DEBIAN_RELEASE}-slim

# Given by whoever publishes an image: scripts/check-container does too.
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="rankduel" \
      org.opencontainers.image.description="HTTP service for online ranker evaluation with dueling bandits" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

# SQLite and the root certificates are part of the program; it needs nothing but the C library.
COPY --from=build /out/usr/local/bin/rankduel /usr/local/bin/rankduel
# The folder's owner is what a new volume gets.
COPY --from=build --chown=10001:10001 /out/var/lib/rankduel /var/lib/rankduel

ENV RANKDUEL_LISTEN=0.0.0.0:7171 \
    RANKDUEL_DATABASE_URL=sqlite:///var/lib/rankduel/rankduel.db

# A number, so that an orchestrator can see that it is not root.
USER 10001:10001
WORKDIR /var/lib/rankduel
VOLUME ["/var/lib/rankduel"]
EXPOSE 7171
STOPSIGNAL SIGTERM
# Liveness, not readiness: restarting the server does not mend its database.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["rankduel", "health"]
ENTRYPOINT ["rankduel"]
CMD ["serve"]
