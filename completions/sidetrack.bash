# Completion of sidetrack and istio-iptables by bash:  source <(sidetrack completion bash)

# bash splits the line at the characters of COMP_WORDBREAKS, "--backend=auto" into three words, and replaces the last.
_sidetrack() {
  local program=sidetrack kind kept word about before words current last=${COMP_WORDS[COMP_CWORD]}
  read -ra words <<<"${COMP_LINE:0:COMP_POINT}"
  if [[ ${COMP_LINE:0:COMP_POINT} == *[[:blank:]] ]]; then words+=(''); fi
  current=${words[${#words[@]} - 1]}
  if [[ ${words[0]} == */sidetrack ]]; then program=${words[0]/#\~\//$HOME/}; fi
  if [[ $last == [=@:] ]]; then last=''; fi
  before=${current%"$last"}
  COMPREPLY=()
  {
    IFS=$'\t' read -r kind kept
    while IFS=$'\t' read -r word about; do
      word=$kept$word
      printf -v word %q "${word#"$before"}"
      COMPREPLY+=("$word")
    done
  } < <("$program" __complete "${words[@]}" 2>/dev/null)
  if [[ $kind != files ]]; then return; fi
  compopt -o filenames -o nospace 2>/dev/null
  while IFS= read -r word; do
    if [[ -d $word ]]; then word+=/; fi
    word=$kept$word
    COMPREPLY+=("${word#"$before"}")
  done < <(compgen -f -- "${current#"$kept"}")
}

complete -F _sidetrack sidetrack istio-iptables
