# Sourced by the scripts that ship the program.

project_version() { sed -n 's/^project(sidetrack VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt; }
release_notes() { awk -v version="$(project_version)" '/^## / { on = $2 == version; next } on' CHANGELOG.md; }
chart_versions() { sed -n 's/^\(version\|appVersion\): "\?\([0-9.]*\)"\?$/\2/p' charts/sidetrack/Chart.yaml | sort -u; }
project_git() { git -c safe.directory="$PWD" "$@"; } # root works in a user's checkout

revision() { echo "${SIDETRACK_REVISION:-$(project_git rev-parse HEAD 2>/dev/null || echo unknown)}"; }

# set_release_time: SOURCE_DATE_EPOCH, the commit's time unless it is set.
set_release_time() {
  : "${SOURCE_DATE_EPOCH:=$(project_git log -1 --format=%ct 2>/dev/null)}" || true
  [ -n "$SOURCE_DATE_EPOCH" ] || { echo "$0: this is no git checkout: set SOURCE_DATE_EPOCH to the time of the release" >&2; exit 1; }
  export SOURCE_DATE_EPOCH
}

# static_program: builds the static program for this machine and prints where it is.
static_program() {
  scripts/build release -DSIDETRACK_STATIC=ON -- sidetrack_static >&2
  echo build/release/static/sidetrack
}

# static_injector: the same of sidetrack-injector.
static_injector() {
  scripts/setup injector >&2
  scripts/build release -DSIDETRACK_STATIC=ON -- sidetrack_injector_static >&2
  echo build/release/static/sidetrack-injector
}

# architecture_of PROGRAM: as Debian and OCI name it.
architecture_of() {
  case $(readelf --file-header "$1" | sed -n 's/^ *Machine: *//p') in
    *X86-64) echo amd64 ;;
    AArch64) echo arm64 ;;
    *) echo "$1: expected a program for amd64 or arm64" >&2; return 1 ;;
  esac
}

# tool_for ARCHITECTURE TOOL: the compiler's or linker's tool for it.
tool_for() {
  case $1 in
    amd64) echo "x86_64-linux-gnu-$2" ;;
    arm64) echo "aarch64-linux-gnu-$2" ;;
  esac
}

# link_folders ARCHITECTURE: where cmake/cross.cmake has the linker look first.
link_folders() {
  case $1 in
    arm64) echo -B/usr/lib/gcc/aarch64-linux-gnu/12 -B/usr/lib/aarch64-linux-gnu ;;
  esac
}

strip_program() { "$(tool_for "$(architecture_of "$1")" strip)" "$1"; }
