# Sourced by the scripts that build images or run containers.
umask 022 # directories of an image have the same modes everywhere
cache=${SIDETRACK_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/sidetrack}

# private_podman DIRECTORY: makes `podman` use its own store and configuration there; the machine's are neither used nor changed.
private_podman() {
  podman_options=(--root "$1/store" --runroot "$1/run" --tmpdir "$1/libpod" --storage-driver vfs)
  printf '[engine]\nlock_type = "file"\n' >"$1/containers.conf" # the other kind is shared by all stores
  export CONTAINERS_CONF=$1/containers.conf TMPDIR=$1
}
podman() { command podman "${podman_options[@]}" "$@"; }

# add_program PROGRAM ROOT [PACKAGES]: copies a program with its loader and shared libraries into ROOT, each at its own path,
# where the loader finds it without a cache. PACKAGES: the directory of unpacked packages that PROGRAM and some of them come from.
add_program() {
  local program=$1 root=$2 packages=${3:-} file
  { echo "$program"
    LD_LIBRARY_PATH=$packages/usr/lib/$(gcc -print-multiarch) ldd "$program" | awk '$2 == "=>" { print $3 } $1 ~ /^\// { print $1 }'
  } | while read -r file; do
    install -D -m 755 "$file" "$root${file#"$packages"}"
  done
}

# scratch_image NAME ROOT EPOCH ARCHIVE [podman build options]…: an image FROM scratch that holds ROOT, as OCI archive, whose layers
# are compressed by gzip, or by $compression.
scratch_image() {
  local name=$1 root=$2 epoch=$3 archive=$4
  shift 4
  podman build --quiet --pull=never --format oci --timestamp "$epoch" --identity-label=false --tag "$name" "$@" "$root" >/dev/null
  rm -f "$archive"
  podman push --quiet --compression-format "${compression:-gzip}" "$name" "oci-archive:$archive:$name"
}
