# What a script answers to --help: the comment at its head. Sourced before it changes its folder.
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
