# The sidecar, the injector and the command line in one image: Node, what Node links to, and one bundle.
# No shell, no package manager; runs as 65532 on a read-only root.
#
#   docker build -t grapevine:0.1.0 .
#
# Where no engine is at hand, .ci/build-image.sh builds and runs the same stages.
ARG NODE_IMAGE=node:24.21.0-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /src
COPY package.json package-lock.json ./
# Nothing that is bundled needs its install scripts.
RUN npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
COPY .ci/bundle.mjs .ci/bundle-kube-config.mjs .ci/image-rootfs.sh .ci/
COPY src src
RUN node .ci/bundle.mjs /rootfs/app /usr/local/bin/node && sh .ci/image-rootfs.sh /rootfs

FROM scratch
COPY --from=build /rootfs/ /
# The heap takes 60 % of the container's memory limit; the rest is for buffers, sockets and the program.
# --max-semi-space-size keeps the young generation from growing beyond what short requests need.
ENV PATH=/usr/local/bin \
    NODE_ENV=production \
    NODE_OPTIONS="--max-old-space-size-percentage=60 --max-semi-space-size=8"
USER 65532:65532
# Gossip; proxy; telemetry; the injector's webhook. API and admin listen on loopback only.
EXPOSE 7946/tcp 7946/udp 7980/tcp 7990/tcp 8443/tcp
ENTRYPOINT ["/usr/local/bin/grapevine"]
CMD ["--help"]
