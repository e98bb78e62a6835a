# Completion of sidetrack and istio-iptables by bash:  source <(sidetrack completion bash)

_sidetrack_words() { # WORD...: those that continue what is typed
  local word
  for word; do
    if [[ $word == "$current"* ]]; then COMPREPLY+=("$before$word"); fi
  done
}

_sidetrack_files() { # [PREFIX]
  local file IFS=$'\n'
  compopt -o filenames -o nospace 2>/dev/null
  for file in $(compgen -f -- "$current"); do
    if [[ -d $file ]]; then file+=/; fi
    COMPREPLY+=("$before$file")
  done
}

_sidetrack_items() { # WORD...: of a list, after its last comma; or @FILE
  if [[ $current == @* ]]; then before+=@ current=${current#@} file=1; fi
  if [[ -n $file ]]; then
    _sidetrack_files
    return
  fi
  if [[ $current == *,* ]]; then before+=${current%,*}, current=${current##*,}; fi
  _sidetrack_words "$@"
}

_sidetrack_names() { # FOLDER/*: the names of the files there
  if [[ -e $1 ]]; then _sidetrack_words "${@##*/}"; fi
}

_sidetrack_value() { # OPTION
  case $1 in
    *:--envoy-port | *:-p) : ;;
    *:--inbound-capture-port | *:-z) : ;;
    *:--inbound-tunnel-port | *:-e) : ;;
    *:--proxy-uid | *:-u) _sidetrack_items ;;
    *:--proxy-gid | *:-g) _sidetrack_items ;;
    *:--istio-inbound-interception-mode | *:-m) _sidetrack_words REDIRECT TPROXY NONE ;;
    *:--istio-inbound-ports | *:-b) _sidetrack_items "'*'" ;;
    *:--istio-local-exclude-ports | *:-d) _sidetrack_items ;;
    *:--include-inbound-ranges) _sidetrack_items "'*'" ;;
    *:--exclude-inbound-ranges) _sidetrack_items ;;
    *:--istio-exclude-interfaces | *:-c) set -- /sys/class/net/*; _sidetrack_items "${@##*/}" ;;
    *:--istio-service-cidr | *:-i) _sidetrack_items "'*'" ;;
    *:--istio-service-exclude-cidr | *:-x) _sidetrack_items ;;
    *:--istio-outbound-ports | *:-q) _sidetrack_items ;;
    *:--istio-local-outbound-ports-exclude | *:-o) _sidetrack_items ;;
    *:--kube-virt-interfaces | *:-k) set -- /sys/class/net/*; _sidetrack_items "${@##*/}" ;;
    *:--istio-inbound-tproxy-mark | *:-t) : ;;
    *:--istio-inbound-tproxy-route-table | *:-r) : ;;
    *:--exclude-uids) _sidetrack_items ;;
    *:--exclude-gids) _sidetrack_items ;;
    *:--exclude-uid-ports) _sidetrack_items ;;
    *:--bypass-cgroup) _sidetrack_items ;;
    *:--capture-udp) _sidetrack_items ;;
    apply:--dataplane | render:--dataplane | diff:--dataplane | verify:--dataplane | explain:--dataplane | map:--dataplane | lint:--dataplane | cni:--dataplane) _sidetrack_words sidecar ambient ;;
    show:--dataplane | clean:--dataplane) _sidetrack_words sidecar ambient ;;
    *:--probe-address) : ;;
    *:--probe-address6) : ;;
    *:--ip-families) _sidetrack_items ipv4 ipv6 ;;
    *:--dns-server) _sidetrack_items ;;
    *:--when-ready) : ;;
    *:--confirm) : ;;
    *:--platform) _sidetrack_words aks eks gke k3s kind microk8s minikube openshift rke2 ;;
    *:--bin-dir) _sidetrack_files ;;
    *:--net-dir) _sidetrack_files ;;
    *:--exclude-namespaces) set -- /sys/class/net/*; _sidetrack_items "${@##*/}" ;;
    *:--plugin-log) _sidetrack_files ;;
    *:--backend) _sidetrack_words auto nftables iptables-nft iptables-legacy ;;
    *:--filename | *:-f) _sidetrack_files ;;
    *:--template) _sidetrack_files ;;
    *:--pod) _sidetrack_files ;;
    *:--set) : ;;
    *:--values) _sidetrack_files ;;
    *:--injector) _sidetrack_words istio sidetrack ;;
    *:--metrics) _sidetrack_files ;;
    *:--pod-timeout) : ;;
    *:--records) _sidetrack_files ;;
    *:--wait) : ;;
    *:--uid) : ;;
    *:--gid) : ;;
    *:--cgroup) _sidetrack_files ;;
    *:--from) : ;;
    *:--from-port) : ;;
    *:--in-interface) _sidetrack_names /sys/class/net/* ;;
    *:--out-interface) _sidetrack_names /sys/class/net/* ;;
    *:--mark) : ;;
    *:--state) _sidetrack_words new established reply invalid ;;
    *:--netns) _sidetrack_names /run/netns/*; _sidetrack_files ;;
    *:--pid) _sidetrack_names /proc/[0-9]* ;;
    apply:--format | render:--format) _sidetrack_words text nft json svg ;;
    diff:--format | verify:--format | show:--format | explain:--format | lint:--format | doctor:--format | pods:--format | args:--format | cni:--format) _sidetrack_words text json ;;
    map:--format) _sidetrack_words text json svg ;;
    *:--family) _sidetrack_words ipv4 ipv6 ;;
    *:--way) _sidetrack_words out in lo ;;
    *:--color) _sidetrack_words auto always never ;;
    *:--iptables-probe-port) : ;;
    *:--probe-timeout) : ;;
    *:--network-namespace) _sidetrack_files ;;
    *:--force-iptables-binary) _sidetrack_words legacy nft ;;
    *:--log_output_level) _sidetrack_items debug info warn error fatal none ;;
    *:--log_target) _sidetrack_words stdout stderr; _sidetrack_files ;;
    *:--log_caller) _sidetrack_items ;;
    *:--log_stacktrace_level) _sidetrack_items debug info warn error fatal none ;;
    *:--vklog) : ;;
    *) return 1 ;;
  esac
}

_sidetrack() {
  local current=${COMP_WORDS[COMP_CWORD]} previous='' before='' command='' file='' first=1 place=$COMP_CWORD
  COMPREPLY=()
  if [[ $current == [=@] && $COMP_WORDBREAKS == *"$current"* ]]; then
    current='' place=$((place + 1))
  fi
  if [[ ${COMP_WORDS[place - 1]} == @ ]]; then file=1 place=$((place - 1)); fi
  if [[ ${COMP_WORDS[place - 1]} == = ]]; then place=$((place - 1)); fi
  previous=${COMP_WORDS[place - 1]}
  if [[ $current == --*=* ]]; then
    previous=${current%%=*} before=$previous= current=${current#*=}
  fi

  if [[ ${COMP_WORDS[0]##*/} == istio-iptables ]]; then
    command=apply
  elif [[ ${COMP_WORDS[1]} == istio-iptables && $COMP_CWORD -gt 1 ]]; then
    command=apply first=2
  elif [[ ${COMP_WORDS[1]} == -* ]]; then
    command=apply
  elif ((COMP_CWORD == 1)); then
    _sidetrack_words istio-iptables help version apply render diff verify show explain map lint clean doctor pods args inject cni completion
    return
  else
    command=${COMP_WORDS[1]} first=2
  fi

  if [[ $current != -* ]] && _sidetrack_value "$command:$previous"; then return; fi
  case $command:$((COMP_CWORD - first + 1)) in
    help:1) _sidetrack_words apply render diff verify show explain map lint clean doctor pods args inject cni completion ;;
    explain:1) _sidetrack_words out in lo ;;
    explain:2) _sidetrack_words tcp udp icmp ;;
    cni:1) _sidetrack_words install uninstall status ;;
    completion:1) _sidetrack_words bash zsh fish ;;
  esac
  if [[ $current != -* ]]; then return; fi
  case $command in
    apply) _sidetrack_words --envoy-port -p --inbound-capture-port -z --inbound-tunnel-port -e --proxy-uid -u --proxy-gid -g --istio-inbound-interception-mode -m --istio-inbound-ports -b --istio-local-exclude-ports -d --include-inbound-ranges --exclude-inbound-ranges --istio-exclude-interfaces -c --istio-service-cidr -i --istio-service-exclude-cidr -x --istio-outbound-ports -q --istio-local-outbound-ports-exclude -o --kube-virt-interfaces -k --istio-inbound-tproxy-mark -t --istio-inbound-tproxy-route-table -r --exclude-uids --exclude-gids --exclude-uid-ports --bypass-cgroup --capture-udp --redirect-dns --capture-all-dns --track-forwarded-dns --drop-invalid --dual-stack --dataplane --probe-address --probe-address6 --ingress --ip-families --dns-server --dry-run -n --strict --check --prove --when-ready --confirm --backend --wait --netns --pid --host --no-sandbox --format --json --family --color --iptables-probe-port --probe-timeout --skip-rule-apply --run-validation --network-namespace --cni-mode --reconcile --cleanup-only --force-apply --native-nftables --force-iptables-binary --log_output_level --log_as_json --log_target --log_caller --log_stacktrace_level --vklog --help -h ;;
    render) _sidetrack_words --envoy-port -p --inbound-capture-port -z --inbound-tunnel-port -e --proxy-uid -u --proxy-gid -g --istio-inbound-interception-mode -m --istio-inbound-ports -b --istio-local-exclude-ports -d --include-inbound-ranges --exclude-inbound-ranges --istio-exclude-interfaces -c --istio-service-cidr -i --istio-service-exclude-cidr -x --istio-outbound-ports -q --istio-local-outbound-ports-exclude -o --kube-virt-interfaces -k --istio-inbound-tproxy-mark -t --istio-inbound-tproxy-route-table -r --exclude-uids --exclude-gids --exclude-uid-ports --bypass-cgroup --capture-udp --redirect-dns --capture-all-dns --track-forwarded-dns --drop-invalid --dual-stack --dataplane --probe-address --probe-address6 --ingress --ip-families --dns-server --backend --pod --set --values --injector --netns --pid --host --no-sandbox --format --json --family --color --native-nftables --force-iptables-binary --log_output_level --log_as_json --log_target --log_caller --log_stacktrace_level --vklog --help -h ;;
    diff) _sidetrack_words --envoy-port -p --inbound-capture-port -z --inbound-tunnel-port -e --proxy-uid -u --proxy-gid -g --istio-inbound-interception-mode -m --istio-inbound-ports -b --istio-local-exclude-ports -d --include-inbound-ranges --exclude-inbound-ranges --istio-exclude-interfaces -c --istio-service-cidr -i --istio-service-exclude-cidr -x --istio-outbound-ports -q --istio-local-outbound-ports-exclude -o --kube-virt-interfaces -k --istio-inbound-tproxy-mark -t --istio-inbound-tproxy-route-table -r --exclude-uids --exclude-gids --exclude-uid-ports --bypass-cgroup --capture-udp --redirect-dns --capture-all-dns --track-forwarded-dns --drop-invalid --dual-stack --dataplane --probe-address --probe-address6 --ingress --ip-families --dns-server --clean --backend --pod --set --values --injector --netns --pid --host --no-sandbox --format --json --effect --color --native-nftables --force-iptables-binary --log_output_level --log_as_json --log_target --log_caller --log_stacktrace_level --vklog --help -h ;;
    verify) _sidetrack_words --envoy-port -p --inbound-capture-port -z --inbound-tunnel-port -e --proxy-uid -u --proxy-gid -g --istio-inbound-interception-mode -m --istio-inbound-ports -b --istio-local-exclude-ports -d --include-inbound-ranges --exclude-inbound-ranges --istio-exclude-interfaces -c --istio-service-cidr -i --istio-service-exclude-cidr -x --istio-outbound-ports -q --istio-local-outbound-ports-exclude -o --kube-virt-interfaces -k --istio-inbound-tproxy-mark -t --istio-inbound-tproxy-route-table -r --exclude-uids --exclude-gids --exclude-uid-ports --bypass-cgroup --capture-udp --redirect-dns --capture-all-dns --track-forwarded-dns --drop-invalid --dual-stack --dataplane --probe-address --probe-address6 --ingress --ip-families --dns-server --probe --backend --pod --set --values --injector --netns --pid --host --no-sandbox --format --json --color --iptables-probe-port --probe-timeout --native-nftables --force-iptables-binary --log_output_level --log_as_json --log_target --log_caller --log_stacktrace_level --vklog --help -h ;;
    show) _sidetrack_words --dataplane --watch --backend --netns --pid --host --no-sandbox --format --json --color --log_output_level --log_as_json --log_target --log_caller --log_stacktrace_level --vklog --help -h ;;
    explain) _sidetrack_words --envoy-port -p --inbound-capture-port -z --inbound-tunnel-port -e --proxy-uid -u --proxy-gid -g --istio-inbound-interception-mode -m --istio-inbound-ports -b --istio-local-exclude-ports -d --include-inbound-ranges --exclude-inbound-ranges --istio-exclude-interfaces -c --istio-service-cidr -i --istio-service-exclude-cidr -x --istio-outbound-ports -q --istio-local-outbound-ports-exclude -o --kube-virt-interfaces -k --istio-inbound-tproxy-mark -t --istio-inbound-tproxy-route-table -r --exclude-uids --exclude-gids --exclude-uid-ports --bypass-cgroup --capture-udp --redirect-dns --capture-all-dns --track-forwarded-dns --drop-invalid --dual-stack --dataplane --probe-address --probe-address6 --ingress --ip-families --dns-server --plan --backend --pod --set --values --injector --uid --gid --cgroup --from --from-port --in-interface --out-interface --mark --state --netns --pid --host --no-sandbox --format --json --brief --color --native-nftables --force-iptables-binary --log_output_level --log_as_json --log_target --log_caller --log_stacktrace_level --vklog --help -h ;;
    map) _sidetrack_words --envoy-port -p --inbound-capture-port -z --inbound-tunnel-port -e --proxy-uid -u --proxy-gid -g --istio-inbound-interception-mode -m --istio-inbound-ports -b --istio-local-exclude-ports -d --include-inbound-ranges --exclude-inbound-ranges --istio-exclude-interfaces -c --istio-service-cidr -i --istio-service-exclude-cidr -x --istio-outbound-ports -q --istio-local-outbound-ports-exclude -o --kube-virt-interfaces -k --istio-inbound-tproxy-mark -t --istio-inbound-tproxy-route-table -r --exclude-uids --exclude-gids --exclude-uid-ports --bypass-cgroup --capture-udp --redirect-dns --capture-all-dns --track-forwarded-dns --drop-invalid --dual-stack --dataplane --probe-address --probe-address6 --ingress --ip-families --dns-server --plan --backend --pod --set --values --injector --netns --pid --host --no-sandbox --format --json --family --way --color --native-nftables --force-iptables-binary --log_output_level --log_as_json --log_target --log_caller --log_stacktrace_level --vklog --help -h ;;
    lint) _sidetrack_words --envoy-port -p --inbound-capture-port -z --inbound-tunnel-port -e --proxy-uid -u --proxy-gid -g --istio-inbound-interception-mode -m --istio-inbound-ports -b --istio-local-exclude-ports -d --include-inbound-ranges --exclude-inbound-ranges --istio-exclude-interfaces -c --istio-service-cidr -i --istio-service-exclude-cidr -x --istio-outbound-ports -q --istio-local-outbound-ports-exclude -o --kube-virt-interfaces -k --istio-inbound-tproxy-mark -t --istio-inbound-tproxy-route-table -r --exclude-uids --exclude-gids --exclude-uid-ports --bypass-cgroup --capture-udp --redirect-dns --capture-all-dns --track-forwarded-dns --drop-invalid --dual-stack --dataplane --probe-address --probe-address6 --ingress --ip-families --dns-server --plan --backend --pod --set --values --injector --netns --pid --host --no-sandbox --format --json --color --native-nftables --force-iptables-binary --log_output_level --log_as_json --log_target --log_caller --log_stacktrace_level --vklog --help -h ;;
    clean) _sidetrack_words --dataplane --backend --wait --netns --pid --host --no-sandbox --color --log_output_level --log_as_json --log_target --log_caller --log_stacktrace_level --vklog --help -h ;;
    doctor) _sidetrack_words --backend --netns --pid --host --no-sandbox --format --json --color --log_output_level --log_as_json --log_target --log_caller --log_stacktrace_level --vklog --help -h ;;
    pods) _sidetrack_words --repair --metrics --pod-timeout --records --no-sandbox --format --json --log_output_level --log_as_json --log_target --log_caller --log_stacktrace_level --vklog --help -h ;;
    args) _sidetrack_words --filename -f --set --values --injector --why --no-sandbox --format --json --log_output_level --log_as_json --log_target --log_caller --log_stacktrace_level --vklog --help -h ;;
    inject) _sidetrack_words --filename -f --template --set --values --no-sandbox --log_output_level --log_as_json --log_target --log_caller --log_stacktrace_level --vklog --help -h ;;
    cni) _sidetrack_words --envoy-port -p --inbound-capture-port -z --inbound-tunnel-port -e --proxy-uid -u --proxy-gid -g --istio-inbound-tproxy-mark -t --istio-inbound-tproxy-route-table -r --redirect-dns --drop-invalid --dual-stack --dataplane --probe-address --probe-address6 --watch --platform --bin-dir --net-dir --exclude-namespaces --plugin-log --allow-dynamic --now --backend --records --no-sandbox --format --json --log_output_level --log_as_json --log_target --log_caller --log_stacktrace_level --vklog --help -h ;;
    completion) _sidetrack_words --help -h ;;
  esac
  if ((COMP_CWORD == 1)) && [[ ${COMP_WORDS[0]##*/} != istio-iptables ]]; then _sidetrack_words --version; fi
}

complete -F _sidetrack sidetrack istio-iptables
