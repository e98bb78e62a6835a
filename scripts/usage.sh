# What a script answers to --help: the comment at its head. Sourced before it changes its directory.
case ${1-} in
  -h | --help)
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac

# take_seed NAME N: the value of --seed, for all that takes random numbers.
take_seed() {
  [[ $2 =~ ^[0-9]+$ ]] || { echo "scripts/$1: --seed: '$2': expected a number" >&2; exit 2; }
  export SIDETRACK_SEED=$2
}

# refuse_words NAME MOST WORD…: words beyond the first MOST are not ignored.
refuse_words() {
  local name=$1 most=$2
  shift 2
  [ $# -le "$most" ] || { shift "$most"; echo "scripts/$name: '$1': expected no more arguments; see scripts/$name --help" >&2; exit 2; }
}

# ctest_values OPTION: how many words behind it are its value; fails if it is none of ctest's options that choose tests or what is printed.
ctest_values() {
  case $1 in
    -R | --tests-regex | -E | --exclude-regex | -L | --label-regex | -LE | --label-exclude | -I | --tests-information) echo 1 ;;
    -FA | --fixture-exclude-any | -FS | --fixture-exclude-setup | -FC | --fixture-exclude-cleanup) echo 1 ;;
    -j | --parallel | --repeat | --timeout | --stop-time | --test-load | --max-width | -O | --output-log | --output-junit) echo 1 ;;
    -N | --show-only | --show-only=* | -V | --verbose | -VV | --extra-verbose | -Q | --quiet | --debug | --progress | --print-labels) echo 0 ;;
    -U | --union | -j[1-9]* | --no-tests=* | --output-on-failure | --stop-on-failure | --rerun-failed | --schedule-random) echo 0 ;;
    *) return 1 ;;
  esac
}
