#compdef sidetrack istio-iptables
# Completion of sidetrack and istio-iptables by zsh:  source <(sidetrack completion zsh)

_sidetrack_items() { # WORD...: of a list, after its last comma; or @FILE
  if compset -P @; then
    _files
  else
    compset -P '*,'
    if [[ $1 == '*' ]]; then compadd -- "$@"; else compadd -qS , -- "$@"; fi
  fi
}

_sidetrack_namespaces() {
  local -a names=(/run/netns/*(N:t))
  compadd -- $names
  _files
}

_sidetrack_processes() {
  local -a processes=(/proc/[0-9]*(N:t))
  compadd -- $processes
}

_sidetrack_interfaces() {
  local -a interfaces=(/sys/class/net/*(N:t))
  if [[ $1 == list ]]; then _sidetrack_items $interfaces; else compadd -- $interfaces; fi
}

_sidetrack_targets() {
  compadd -- "$@"
  _files
}

_sidetrack_apply() {
  _arguments -s -S : \
    '(-p --envoy-port)'{-p+,--envoy-port=}'[the proxy'\''s port for outbound]:PORT: ' \
    '(-z --inbound-capture-port)'{-z+,--inbound-capture-port=}'[the proxy'\''s port for inbound]:PORT: ' \
    '(-e --inbound-tunnel-port)'{-e+,--inbound-tunnel-port=}'[the proxy'\''s port for HBONE]:PORT: ' \
    '*'{-u+,--proxy-uid=}'[the proxy'\''s uid]:UIDS: _sidetrack_items' \
    '*'{-g+,--proxy-gid=}'[the proxy'\''s gid]:GIDS: _sidetrack_items' \
    '(-m --istio-inbound-interception-mode)'{-m+,--istio-inbound-interception-mode=}'[how inbound is captured]:MODE:(REDIRECT TPROXY NONE)' \
    '*'{-b+,--istio-inbound-ports=}'[inbound\: capture these]:PORTS|'\''*'\'': _sidetrack_items \*' \
    '*'{-d+,--istio-local-exclude-ports=}'[inbound\: all but these, with -b '\''*'\'']:PORTS: _sidetrack_items' \
    '*--include-inbound-ranges=[inbound\: capture only from these]:CIDRS|'\''*'\'': _sidetrack_items \*' \
    '*--exclude-inbound-ranges=[inbound\: not from these sources]:CIDRS: _sidetrack_items' \
    '*'{-c+,--istio-exclude-interfaces=}'[leave these interfaces alone]:NAMES: _sidetrack_interfaces list' \
    '*'{-i+,--istio-service-cidr=}'[outbound\: capture these ranges]:CIDRS|'\''*'\'': _sidetrack_items \*' \
    '*'{-x+,--istio-service-exclude-cidr=}'[outbound\: not these ranges]:CIDRS: _sidetrack_items' \
    '*'{-q+,--istio-outbound-ports=}'[outbound\: these ports too, anywhere]:PORTS: _sidetrack_items' \
    '*'{-o+,--istio-local-outbound-ports-exclude=}'[outbound\: not these ports]:PORTS: _sidetrack_items' \
    '*'{-k+,--kube-virt-interfaces=}'[traffic from them is outbound]:NAMES: _sidetrack_interfaces list' \
    '(-t --istio-inbound-tproxy-mark)'{-t+,--istio-inbound-tproxy-mark=}'[the mark of TPROXY'\''s packets]:MARK: ' \
    '(-r --istio-inbound-tproxy-route-table)'{-r+,--istio-inbound-tproxy-route-table=}'[TPROXY'\''s routing table]:TABLE: ' \
    '*--exclude-uids=[outbound\: skip traffic from these UIDs]:UIDS: _sidetrack_items' \
    '*--exclude-gids=[outbound\: not of these groups]:GIDS: _sidetrack_items' \
    '*--exclude-uid-ports=[outbound\: skip traffic from these UIDs to these ports]:UIDS\:PORTS: _sidetrack_items' \
    '*--bypass-cgroup=[outbound\: not from these cgroups (v2)]:PATHS: _sidetrack_items' \
    '*--capture-udp=[inbound\: also capture these UDP ports, with -m TPROXY]:PORTS: _sidetrack_items' \
    '--redirect-dns[capture DNS to resolv.conf'\''s servers]' \
    '--capture-all-dns[with --redirect-dns\: to any server]' \
    '--track-forwarded-dns[with --redirect-dns\: replies reach hosts behind -k]' \
    '--drop-invalid[drop packets of unknown connections]' \
    '--dual-stack[IPv6 too, if the pod has it]' \
    '--dataplane=[the proxy in the pod, or the node'\''s ztunnel]:MODE:(sidecar ambient)' \
    '--probe-address=[where the kubelet'\''s probes come from]:ADDRESS: ' \
    '--probe-address6=[where they come from in IPv6]:ADDRESS: ' \
    '--ingress[leave inbound alone\: a gateway]' \
    '*--ip-families=[ipv4 or ipv4,ipv6]:FAMILIES: _sidetrack_items ipv4 ipv6' \
    '*--dns-server=[servers for --redirect-dns]:ADDRESSES: _sidetrack_items' \
    '(-n --dry-run)'{-n,--dry-run}'[print the rules, touch nothing (render)]' \
    '--strict[fail if other programs'\'' rules interfere]' \
    '--check[check that the kernel would accept the rules]' \
    '--prove[refuse rules by which traffic escapes or loops]' \
    '--when-ready=[first wait, 60s, until proxy or ztunnel listens]:PORT\[,TIME\]: ' \
    '--confirm=[roll back unless confirmed in that time]:DURATION: ' \
    '--backend=[which backend holds the rules]:BACKEND:(auto nftables iptables-nft iptables-legacy)' \
    '--wait=[how long to wait for other writers]:DURATION: ' \
    '*--netns=[work in this network namespace]:PATH|NAME: _sidetrack_namespaces' \
    '--pid=[work in this process'\''s namespaces]:PID: _sidetrack_processes' \
    '--host[allow the caller'\''s own network namespace]' \
    '--no-sandbox[keep capabilities and system calls that are not needed]' \
    '--format=[the format of the result]:FORMAT:(text nft json svg)' \
    '--json[--format json]' \
    '--family=[print only this family'\''s rules]:FAMILY:(ipv4 ipv6)' \
    '--color=[whether to colour the result]:WHEN:(auto always never)' \
    '--iptables-probe-port=[the port that validation connects to]:PORT: ' \
    '--probe-timeout=[the time limit of validation]:DURATION: ' \
    '--skip-rule-apply[program nothing]' \
    '--run-validation[then test the interception with a real connection; exit 126 if it fails]' \
    '*--network-namespace=[as --netns]:PATH:_files' \
    '--cni-mode[called by a CNI plugin on the node]' \
    '--reconcile[accepted\: apply always replaces what differs]' \
    '--cleanup-only[as the command clean]' \
    '--force-apply[rewrite even equal rules]' \
    '--native-nftables[as --backend nftables]' \
    '--force-iptables-binary=[as --backend iptables-legacy, iptables-nft]:BINARY:(legacy nft)' \
    '*--log_output_level=[debug, info, warn, error, fatal or none]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--log_as_json[one JSON object per line]' \
    '*--log_target=[stdout, stderr or a path; may be repeated]:TARGET: _sidetrack_targets stdout stderr' \
    '*--log_caller=[add the source line of each message]:SCOPES: _sidetrack_items' \
    '*--log_stacktrace_level=[accepted, without effect]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--vklog=[accepted, without effect]:N: ' \
    '(-h --help)'{-h,--help}'[this text]'
}

_sidetrack_render() {
  _arguments -s -S : \
    '(-p --envoy-port)'{-p+,--envoy-port=}'[the proxy'\''s port for outbound]:PORT: ' \
    '(-z --inbound-capture-port)'{-z+,--inbound-capture-port=}'[the proxy'\''s port for inbound]:PORT: ' \
    '(-e --inbound-tunnel-port)'{-e+,--inbound-tunnel-port=}'[the proxy'\''s port for HBONE]:PORT: ' \
    '*'{-u+,--proxy-uid=}'[the proxy'\''s uid]:UIDS: _sidetrack_items' \
    '*'{-g+,--proxy-gid=}'[the proxy'\''s gid]:GIDS: _sidetrack_items' \
    '(-m --istio-inbound-interception-mode)'{-m+,--istio-inbound-interception-mode=}'[how inbound is captured]:MODE:(REDIRECT TPROXY NONE)' \
    '*'{-b+,--istio-inbound-ports=}'[inbound\: capture these]:PORTS|'\''*'\'': _sidetrack_items \*' \
    '*'{-d+,--istio-local-exclude-ports=}'[inbound\: all but these, with -b '\''*'\'']:PORTS: _sidetrack_items' \
    '*--include-inbound-ranges=[inbound\: capture only from these]:CIDRS|'\''*'\'': _sidetrack_items \*' \
    '*--exclude-inbound-ranges=[inbound\: not from these sources]:CIDRS: _sidetrack_items' \
    '*'{-c+,--istio-exclude-interfaces=}'[leave these interfaces alone]:NAMES: _sidetrack_interfaces list' \
    '*'{-i+,--istio-service-cidr=}'[outbound\: capture these ranges]:CIDRS|'\''*'\'': _sidetrack_items \*' \
    '*'{-x+,--istio-service-exclude-cidr=}'[outbound\: not these ranges]:CIDRS: _sidetrack_items' \
    '*'{-q+,--istio-outbound-ports=}'[outbound\: these ports too, anywhere]:PORTS: _sidetrack_items' \
    '*'{-o+,--istio-local-outbound-ports-exclude=}'[outbound\: not these ports]:PORTS: _sidetrack_items' \
    '*'{-k+,--kube-virt-interfaces=}'[traffic from them is outbound]:NAMES: _sidetrack_interfaces list' \
    '(-t --istio-inbound-tproxy-mark)'{-t+,--istio-inbound-tproxy-mark=}'[the mark of TPROXY'\''s packets]:MARK: ' \
    '(-r --istio-inbound-tproxy-route-table)'{-r+,--istio-inbound-tproxy-route-table=}'[TPROXY'\''s routing table]:TABLE: ' \
    '*--exclude-uids=[outbound\: skip traffic from these UIDs]:UIDS: _sidetrack_items' \
    '*--exclude-gids=[outbound\: not of these groups]:GIDS: _sidetrack_items' \
    '*--exclude-uid-ports=[outbound\: skip traffic from these UIDs to these ports]:UIDS\:PORTS: _sidetrack_items' \
    '*--bypass-cgroup=[outbound\: not from these cgroups (v2)]:PATHS: _sidetrack_items' \
    '*--capture-udp=[inbound\: also capture these UDP ports, with -m TPROXY]:PORTS: _sidetrack_items' \
    '--redirect-dns[capture DNS to resolv.conf'\''s servers]' \
    '--capture-all-dns[with --redirect-dns\: to any server]' \
    '--track-forwarded-dns[with --redirect-dns\: replies reach hosts behind -k]' \
    '--drop-invalid[drop packets of unknown connections]' \
    '--dual-stack[IPv6 too, if the pod has it]' \
    '--dataplane=[the proxy in the pod, or the node'\''s ztunnel]:MODE:(sidecar ambient)' \
    '--probe-address=[where the kubelet'\''s probes come from]:ADDRESS: ' \
    '--probe-address6=[where they come from in IPv6]:ADDRESS: ' \
    '--ingress[leave inbound alone\: a gateway]' \
    '*--ip-families=[ipv4 or ipv4,ipv6]:FAMILIES: _sidetrack_items ipv4 ipv6' \
    '*--dns-server=[servers for --redirect-dns]:ADDRESSES: _sidetrack_items' \
    '--backend=[which backend holds the rules]:BACKEND:(auto nftables iptables-nft iptables-legacy)' \
    '*--pod=[a pod'\''s manifest in place of options]:FILE:_files' \
    '*--set=[one of Istio'\''s Helm values]:NAME=VALUE: ' \
    '*--values=[a file of Istio'\''s Helm values]:FILE:_files' \
    '--injector=[whose webhook injects the pod]:WHO:(istio sidetrack)' \
    '*--netns=[work in this network namespace]:PATH|NAME: _sidetrack_namespaces' \
    '--pid=[work in this process'\''s namespaces]:PID: _sidetrack_processes' \
    '--host[allow the caller'\''s own network namespace]' \
    '--no-sandbox[keep capabilities and system calls that are not needed]' \
    '--format=[the format of the result]:FORMAT:(text nft json svg)' \
    '--json[--format json]' \
    '--family=[print only this family'\''s rules]:FAMILY:(ipv4 ipv6)' \
    '--color=[whether to colour the result]:WHEN:(auto always never)' \
    '--native-nftables[as --backend nftables]' \
    '--force-iptables-binary=[as --backend iptables-legacy, iptables-nft]:BINARY:(legacy nft)' \
    '*--log_output_level=[debug, info, warn, error, fatal or none]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--log_as_json[one JSON object per line]' \
    '*--log_target=[stdout, stderr or a path; may be repeated]:TARGET: _sidetrack_targets stdout stderr' \
    '*--log_caller=[add the source line of each message]:SCOPES: _sidetrack_items' \
    '*--log_stacktrace_level=[accepted, without effect]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--vklog=[accepted, without effect]:N: ' \
    '(-h --help)'{-h,--help}'[this text]'
}

_sidetrack_diff() {
  _arguments -s -S : \
    '(-p --envoy-port)'{-p+,--envoy-port=}'[the proxy'\''s port for outbound]:PORT: ' \
    '(-z --inbound-capture-port)'{-z+,--inbound-capture-port=}'[the proxy'\''s port for inbound]:PORT: ' \
    '(-e --inbound-tunnel-port)'{-e+,--inbound-tunnel-port=}'[the proxy'\''s port for HBONE]:PORT: ' \
    '*'{-u+,--proxy-uid=}'[the proxy'\''s uid]:UIDS: _sidetrack_items' \
    '*'{-g+,--proxy-gid=}'[the proxy'\''s gid]:GIDS: _sidetrack_items' \
    '(-m --istio-inbound-interception-mode)'{-m+,--istio-inbound-interception-mode=}'[how inbound is captured]:MODE:(REDIRECT TPROXY NONE)' \
    '*'{-b+,--istio-inbound-ports=}'[inbound\: capture these]:PORTS|'\''*'\'': _sidetrack_items \*' \
    '*'{-d+,--istio-local-exclude-ports=}'[inbound\: all but these, with -b '\''*'\'']:PORTS: _sidetrack_items' \
    '*--include-inbound-ranges=[inbound\: capture only from these]:CIDRS|'\''*'\'': _sidetrack_items \*' \
    '*--exclude-inbound-ranges=[inbound\: not from these sources]:CIDRS: _sidetrack_items' \
    '*'{-c+,--istio-exclude-interfaces=}'[leave these interfaces alone]:NAMES: _sidetrack_interfaces list' \
    '*'{-i+,--istio-service-cidr=}'[outbound\: capture these ranges]:CIDRS|'\''*'\'': _sidetrack_items \*' \
    '*'{-x+,--istio-service-exclude-cidr=}'[outbound\: not these ranges]:CIDRS: _sidetrack_items' \
    '*'{-q+,--istio-outbound-ports=}'[outbound\: these ports too, anywhere]:PORTS: _sidetrack_items' \
    '*'{-o+,--istio-local-outbound-ports-exclude=}'[outbound\: not these ports]:PORTS: _sidetrack_items' \
    '*'{-k+,--kube-virt-interfaces=}'[traffic from them is outbound]:NAMES: _sidetrack_interfaces list' \
    '(-t --istio-inbound-tproxy-mark)'{-t+,--istio-inbound-tproxy-mark=}'[the mark of TPROXY'\''s packets]:MARK: ' \
    '(-r --istio-inbound-tproxy-route-table)'{-r+,--istio-inbound-tproxy-route-table=}'[TPROXY'\''s routing table]:TABLE: ' \
    '*--exclude-uids=[outbound\: skip traffic from these UIDs]:UIDS: _sidetrack_items' \
    '*--exclude-gids=[outbound\: not of these groups]:GIDS: _sidetrack_items' \
    '*--exclude-uid-ports=[outbound\: skip traffic from these UIDs to these ports]:UIDS\:PORTS: _sidetrack_items' \
    '*--bypass-cgroup=[outbound\: not from these cgroups (v2)]:PATHS: _sidetrack_items' \
    '*--capture-udp=[inbound\: also capture these UDP ports, with -m TPROXY]:PORTS: _sidetrack_items' \
    '--redirect-dns[capture DNS to resolv.conf'\''s servers]' \
    '--capture-all-dns[with --redirect-dns\: to any server]' \
    '--track-forwarded-dns[with --redirect-dns\: replies reach hosts behind -k]' \
    '--drop-invalid[drop packets of unknown connections]' \
    '--dual-stack[IPv6 too, if the pod has it]' \
    '--dataplane=[the proxy in the pod, or the node'\''s ztunnel]:MODE:(sidecar ambient)' \
    '--probe-address=[where the kubelet'\''s probes come from]:ADDRESS: ' \
    '--probe-address6=[where they come from in IPv6]:ADDRESS: ' \
    '--ingress[leave inbound alone\: a gateway]' \
    '*--ip-families=[ipv4 or ipv4,ipv6]:FAMILIES: _sidetrack_items ipv4 ipv6' \
    '*--dns-server=[servers for --redirect-dns]:ADDRESSES: _sidetrack_items' \
    '--clean[show what clean would remove]' \
    '--backend=[which backend holds the rules]:BACKEND:(auto nftables iptables-nft iptables-legacy)' \
    '*--pod=[a pod'\''s manifest in place of options]:FILE:_files' \
    '*--set=[one of Istio'\''s Helm values]:NAME=VALUE: ' \
    '*--values=[a file of Istio'\''s Helm values]:FILE:_files' \
    '--injector=[whose webhook injects the pod]:WHO:(istio sidetrack)' \
    '*--netns=[work in this network namespace]:PATH|NAME: _sidetrack_namespaces' \
    '--pid=[work in this process'\''s namespaces]:PID: _sidetrack_processes' \
    '--host[allow the caller'\''s own network namespace]' \
    '--no-sandbox[keep capabilities and system calls that are not needed]' \
    '--format=[the format of the result]:FORMAT:(text json)' \
    '--json[--format json]' \
    '--effect[compare by effect\: which packets end otherwise]' \
    '--color=[whether to colour the result]:WHEN:(auto always never)' \
    '--native-nftables[as --backend nftables]' \
    '--force-iptables-binary=[as --backend iptables-legacy, iptables-nft]:BINARY:(legacy nft)' \
    '*--log_output_level=[debug, info, warn, error, fatal or none]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--log_as_json[one JSON object per line]' \
    '*--log_target=[stdout, stderr or a path; may be repeated]:TARGET: _sidetrack_targets stdout stderr' \
    '*--log_caller=[add the source line of each message]:SCOPES: _sidetrack_items' \
    '*--log_stacktrace_level=[accepted, without effect]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--vklog=[accepted, without effect]:N: ' \
    '(-h --help)'{-h,--help}'[this text]'
}

_sidetrack_verify() {
  _arguments -s -S : \
    '(-p --envoy-port)'{-p+,--envoy-port=}'[the proxy'\''s port for outbound]:PORT: ' \
    '(-z --inbound-capture-port)'{-z+,--inbound-capture-port=}'[the proxy'\''s port for inbound]:PORT: ' \
    '(-e --inbound-tunnel-port)'{-e+,--inbound-tunnel-port=}'[the proxy'\''s port for HBONE]:PORT: ' \
    '*'{-u+,--proxy-uid=}'[the proxy'\''s uid]:UIDS: _sidetrack_items' \
    '*'{-g+,--proxy-gid=}'[the proxy'\''s gid]:GIDS: _sidetrack_items' \
    '(-m --istio-inbound-interception-mode)'{-m+,--istio-inbound-interception-mode=}'[how inbound is captured]:MODE:(REDIRECT TPROXY NONE)' \
    '*'{-b+,--istio-inbound-ports=}'[inbound\: capture these]:PORTS|'\''*'\'': _sidetrack_items \*' \
    '*'{-d+,--istio-local-exclude-ports=}'[inbound\: all but these, with -b '\''*'\'']:PORTS: _sidetrack_items' \
    '*--include-inbound-ranges=[inbound\: capture only from these]:CIDRS|'\''*'\'': _sidetrack_items \*' \
    '*--exclude-inbound-ranges=[inbound\: not from these sources]:CIDRS: _sidetrack_items' \
    '*'{-c+,--istio-exclude-interfaces=}'[leave these interfaces alone]:NAMES: _sidetrack_interfaces list' \
    '*'{-i+,--istio-service-cidr=}'[outbound\: capture these ranges]:CIDRS|'\''*'\'': _sidetrack_items \*' \
    '*'{-x+,--istio-service-exclude-cidr=}'[outbound\: not these ranges]:CIDRS: _sidetrack_items' \
    '*'{-q+,--istio-outbound-ports=}'[outbound\: these ports too, anywhere]:PORTS: _sidetrack_items' \
    '*'{-o+,--istio-local-outbound-ports-exclude=}'[outbound\: not these ports]:PORTS: _sidetrack_items' \
    '*'{-k+,--kube-virt-interfaces=}'[traffic from them is outbound]:NAMES: _sidetrack_interfaces list' \
    '(-t --istio-inbound-tproxy-mark)'{-t+,--istio-inbound-tproxy-mark=}'[the mark of TPROXY'\''s packets]:MARK: ' \
    '(-r --istio-inbound-tproxy-route-table)'{-r+,--istio-inbound-tproxy-route-table=}'[TPROXY'\''s routing table]:TABLE: ' \
    '*--exclude-uids=[outbound\: skip traffic from these UIDs]:UIDS: _sidetrack_items' \
    '*--exclude-gids=[outbound\: not of these groups]:GIDS: _sidetrack_items' \
    '*--exclude-uid-ports=[outbound\: skip traffic from these UIDs to these ports]:UIDS\:PORTS: _sidetrack_items' \
    '*--bypass-cgroup=[outbound\: not from these cgroups (v2)]:PATHS: _sidetrack_items' \
    '*--capture-udp=[inbound\: also capture these UDP ports, with -m TPROXY]:PORTS: _sidetrack_items' \
    '--redirect-dns[capture DNS to resolv.conf'\''s servers]' \
    '--capture-all-dns[with --redirect-dns\: to any server]' \
    '--track-forwarded-dns[with --redirect-dns\: replies reach hosts behind -k]' \
    '--drop-invalid[drop packets of unknown connections]' \
    '--dual-stack[IPv6 too, if the pod has it]' \
    '--dataplane=[the proxy in the pod, or the node'\''s ztunnel]:MODE:(sidecar ambient)' \
    '--probe-address=[where the kubelet'\''s probes come from]:ADDRESS: ' \
    '--probe-address6=[where they come from in IPv6]:ADDRESS: ' \
    '--ingress[leave inbound alone\: a gateway]' \
    '*--ip-families=[ipv4 or ipv4,ipv6]:FAMILIES: _sidetrack_items ipv4 ipv6' \
    '*--dns-server=[servers for --redirect-dns]:ADDRESSES: _sidetrack_items' \
    '--probe[try real connections, too]' \
    '--backend=[which backend holds the rules]:BACKEND:(auto nftables iptables-nft iptables-legacy)' \
    '*--pod=[a pod'\''s manifest in place of options]:FILE:_files' \
    '*--set=[one of Istio'\''s Helm values]:NAME=VALUE: ' \
    '*--values=[a file of Istio'\''s Helm values]:FILE:_files' \
    '--injector=[whose webhook injects the pod]:WHO:(istio sidetrack)' \
    '*--netns=[work in this network namespace]:PATH|NAME: _sidetrack_namespaces' \
    '--pid=[work in this process'\''s namespaces]:PID: _sidetrack_processes' \
    '--host[allow the caller'\''s own network namespace]' \
    '--no-sandbox[keep capabilities and system calls that are not needed]' \
    '--format=[the format of the result]:FORMAT:(text json)' \
    '--json[--format json]' \
    '--color=[whether to colour the result]:WHEN:(auto always never)' \
    '--iptables-probe-port=[the port that validation connects to]:PORT: ' \
    '--probe-timeout=[the time limit of validation]:DURATION: ' \
    '--native-nftables[as --backend nftables]' \
    '--force-iptables-binary=[as --backend iptables-legacy, iptables-nft]:BINARY:(legacy nft)' \
    '*--log_output_level=[debug, info, warn, error, fatal or none]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--log_as_json[one JSON object per line]' \
    '*--log_target=[stdout, stderr or a path; may be repeated]:TARGET: _sidetrack_targets stdout stderr' \
    '*--log_caller=[add the source line of each message]:SCOPES: _sidetrack_items' \
    '*--log_stacktrace_level=[accepted, without effect]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--vklog=[accepted, without effect]:N: ' \
    '(-h --help)'{-h,--help}'[this text]'
}

_sidetrack_show() {
  _arguments -s -S : \
    '--dataplane=[ambient\: an agent'\''s rules count, too]:MODE:(sidecar ambient)' \
    '--watch[refresh every second, and mark the counters that move]' \
    '--backend=[which backend holds the rules]:BACKEND:(auto nftables iptables-nft iptables-legacy)' \
    '*--netns=[work in this network namespace]:PATH|NAME: _sidetrack_namespaces' \
    '--pid=[work in this process'\''s namespaces]:PID: _sidetrack_processes' \
    '--host[allow the caller'\''s own network namespace]' \
    '--no-sandbox[keep capabilities and system calls that are not needed]' \
    '--format=[the format of the result]:FORMAT:(text json)' \
    '--json[--format json]' \
    '--color=[whether to colour the result]:WHEN:(auto always never)' \
    '*--log_output_level=[debug, info, warn, error, fatal or none]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--log_as_json[one JSON object per line]' \
    '*--log_target=[stdout, stderr or a path; may be repeated]:TARGET: _sidetrack_targets stdout stderr' \
    '*--log_caller=[add the source line of each message]:SCOPES: _sidetrack_items' \
    '*--log_stacktrace_level=[accepted, without effect]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--vklog=[accepted, without effect]:N: ' \
    '(-h --help)'{-h,--help}'[this text]'
}

_sidetrack_explain() {
  _arguments -s -S : \
    '1:PACKET:(out in lo)' \
    '2:PACKET:(tcp udp icmp)' \
    '(-p --envoy-port)'{-p+,--envoy-port=}'[the proxy'\''s port for outbound]:PORT: ' \
    '(-z --inbound-capture-port)'{-z+,--inbound-capture-port=}'[the proxy'\''s port for inbound]:PORT: ' \
    '(-e --inbound-tunnel-port)'{-e+,--inbound-tunnel-port=}'[the proxy'\''s port for HBONE]:PORT: ' \
    '*'{-u+,--proxy-uid=}'[the proxy'\''s uid]:UIDS: _sidetrack_items' \
    '*'{-g+,--proxy-gid=}'[the proxy'\''s gid]:GIDS: _sidetrack_items' \
    '(-m --istio-inbound-interception-mode)'{-m+,--istio-inbound-interception-mode=}'[how inbound is captured]:MODE:(REDIRECT TPROXY NONE)' \
    '*'{-b+,--istio-inbound-ports=}'[inbound\: capture these]:PORTS|'\''*'\'': _sidetrack_items \*' \
    '*'{-d+,--istio-local-exclude-ports=}'[inbound\: all but these, with -b '\''*'\'']:PORTS: _sidetrack_items' \
    '*--include-inbound-ranges=[inbound\: capture only from these]:CIDRS|'\''*'\'': _sidetrack_items \*' \
    '*--exclude-inbound-ranges=[inbound\: not from these sources]:CIDRS: _sidetrack_items' \
    '*'{-c+,--istio-exclude-interfaces=}'[leave these interfaces alone]:NAMES: _sidetrack_interfaces list' \
    '*'{-i+,--istio-service-cidr=}'[outbound\: capture these ranges]:CIDRS|'\''*'\'': _sidetrack_items \*' \
    '*'{-x+,--istio-service-exclude-cidr=}'[outbound\: not these ranges]:CIDRS: _sidetrack_items' \
    '*'{-q+,--istio-outbound-ports=}'[outbound\: these ports too, anywhere]:PORTS: _sidetrack_items' \
    '*'{-o+,--istio-local-outbound-ports-exclude=}'[outbound\: not these ports]:PORTS: _sidetrack_items' \
    '*'{-k+,--kube-virt-interfaces=}'[traffic from them is outbound]:NAMES: _sidetrack_interfaces list' \
    '(-t --istio-inbound-tproxy-mark)'{-t+,--istio-inbound-tproxy-mark=}'[the mark of TPROXY'\''s packets]:MARK: ' \
    '(-r --istio-inbound-tproxy-route-table)'{-r+,--istio-inbound-tproxy-route-table=}'[TPROXY'\''s routing table]:TABLE: ' \
    '*--exclude-uids=[outbound\: skip traffic from these UIDs]:UIDS: _sidetrack_items' \
    '*--exclude-gids=[outbound\: not of these groups]:GIDS: _sidetrack_items' \
    '*--exclude-uid-ports=[outbound\: skip traffic from these UIDs to these ports]:UIDS\:PORTS: _sidetrack_items' \
    '*--bypass-cgroup=[outbound\: not from these cgroups (v2)]:PATHS: _sidetrack_items' \
    '*--capture-udp=[inbound\: also capture these UDP ports, with -m TPROXY]:PORTS: _sidetrack_items' \
    '--redirect-dns[capture DNS to resolv.conf'\''s servers]' \
    '--capture-all-dns[with --redirect-dns\: to any server]' \
    '--track-forwarded-dns[with --redirect-dns\: replies reach hosts behind -k]' \
    '--drop-invalid[drop packets of unknown connections]' \
    '--dual-stack[IPv6 too, if the pod has it]' \
    '--dataplane=[the proxy in the pod, or the node'\''s ztunnel]:MODE:(sidecar ambient)' \
    '--probe-address=[where the kubelet'\''s probes come from]:ADDRESS: ' \
    '--probe-address6=[where they come from in IPv6]:ADDRESS: ' \
    '--ingress[leave inbound alone\: a gateway]' \
    '*--ip-families=[ipv4 or ipv4,ipv6]:FAMILIES: _sidetrack_items ipv4 ipv6' \
    '*--dns-server=[servers for --redirect-dns]:ADDRESSES: _sidetrack_items' \
    '--plan[the rules of the given options, not the live ones]' \
    '--backend=[which backend holds the rules]:BACKEND:(auto nftables iptables-nft iptables-legacy)' \
    '*--pod=[a pod'\''s manifest in place of options]:FILE:_files' \
    '*--set=[one of Istio'\''s Helm values]:NAME=VALUE: ' \
    '*--values=[a file of Istio'\''s Helm values]:FILE:_files' \
    '--injector=[whose webhook injects the pod]:WHO:(istio sidetrack)' \
    '--uid=[uid of the sender]:UID: ' \
    '--gid=[the group that sends it]:GID: ' \
    '*--cgroup=[the sender'\''s cgroup]:PATH:_files' \
    '--from=[source address]:ADDRESS: ' \
    '--from-port=[source port]:PORT: ' \
    '--in-interface=[the interface it arrives on]:NAME: _sidetrack_interfaces' \
    '--out-interface=[the interface it leaves by]:NAME: _sidetrack_interfaces' \
    '--mark=[the mark of its socket]:MARK: ' \
    '--state=[the state of its connection]:STATE:(new established reply invalid)' \
    '*--netns=[work in this network namespace]:PATH|NAME: _sidetrack_namespaces' \
    '--pid=[work in this process'\''s namespaces]:PID: _sidetrack_processes' \
    '--host[allow the caller'\''s own network namespace]' \
    '--no-sandbox[keep capabilities and system calls that are not needed]' \
    '--format=[the format of the result]:FORMAT:(text json)' \
    '--json[--format json]' \
    '--brief[only the outcome]' \
    '--color=[whether to colour the result]:WHEN:(auto always never)' \
    '--native-nftables[as --backend nftables]' \
    '--force-iptables-binary=[as --backend iptables-legacy, iptables-nft]:BINARY:(legacy nft)' \
    '*--log_output_level=[debug, info, warn, error, fatal or none]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--log_as_json[one JSON object per line]' \
    '*--log_target=[stdout, stderr or a path; may be repeated]:TARGET: _sidetrack_targets stdout stderr' \
    '*--log_caller=[add the source line of each message]:SCOPES: _sidetrack_items' \
    '*--log_stacktrace_level=[accepted, without effect]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--vklog=[accepted, without effect]:N: ' \
    '(-h --help)'{-h,--help}'[this text]'
}

_sidetrack_map() {
  _arguments -s -S : \
    '(-p --envoy-port)'{-p+,--envoy-port=}'[the proxy'\''s port for outbound]:PORT: ' \
    '(-z --inbound-capture-port)'{-z+,--inbound-capture-port=}'[the proxy'\''s port for inbound]:PORT: ' \
    '(-e --inbound-tunnel-port)'{-e+,--inbound-tunnel-port=}'[the proxy'\''s port for HBONE]:PORT: ' \
    '*'{-u+,--proxy-uid=}'[the proxy'\''s uid]:UIDS: _sidetrack_items' \
    '*'{-g+,--proxy-gid=}'[the proxy'\''s gid]:GIDS: _sidetrack_items' \
    '(-m --istio-inbound-interception-mode)'{-m+,--istio-inbound-interception-mode=}'[how inbound is captured]:MODE:(REDIRECT TPROXY NONE)' \
    '*'{-b+,--istio-inbound-ports=}'[inbound\: capture these]:PORTS|'\''*'\'': _sidetrack_items \*' \
    '*'{-d+,--istio-local-exclude-ports=}'[inbound\: all but these, with -b '\''*'\'']:PORTS: _sidetrack_items' \
    '*--include-inbound-ranges=[inbound\: capture only from these]:CIDRS|'\''*'\'': _sidetrack_items \*' \
    '*--exclude-inbound-ranges=[inbound\: not from these sources]:CIDRS: _sidetrack_items' \
    '*'{-c+,--istio-exclude-interfaces=}'[leave these interfaces alone]:NAMES: _sidetrack_interfaces list' \
    '*'{-i+,--istio-service-cidr=}'[outbound\: capture these ranges]:CIDRS|'\''*'\'': _sidetrack_items \*' \
    '*'{-x+,--istio-service-exclude-cidr=}'[outbound\: not these ranges]:CIDRS: _sidetrack_items' \
    '*'{-q+,--istio-outbound-ports=}'[outbound\: these ports too, anywhere]:PORTS: _sidetrack_items' \
    '*'{-o+,--istio-local-outbound-ports-exclude=}'[outbound\: not these ports]:PORTS: _sidetrack_items' \
    '*'{-k+,--kube-virt-interfaces=}'[traffic from them is outbound]:NAMES: _sidetrack_interfaces list' \
    '(-t --istio-inbound-tproxy-mark)'{-t+,--istio-inbound-tproxy-mark=}'[the mark of TPROXY'\''s packets]:MARK: ' \
    '(-r --istio-inbound-tproxy-route-table)'{-r+,--istio-inbound-tproxy-route-table=}'[TPROXY'\''s routing table]:TABLE: ' \
    '*--exclude-uids=[outbound\: skip traffic from these UIDs]:UIDS: _sidetrack_items' \
    '*--exclude-gids=[outbound\: not of these groups]:GIDS: _sidetrack_items' \
    '*--exclude-uid-ports=[outbound\: skip traffic from these UIDs to these ports]:UIDS\:PORTS: _sidetrack_items' \
    '*--bypass-cgroup=[outbound\: not from these cgroups (v2)]:PATHS: _sidetrack_items' \
    '*--capture-udp=[inbound\: also capture these UDP ports, with -m TPROXY]:PORTS: _sidetrack_items' \
    '--redirect-dns[capture DNS to resolv.conf'\''s servers]' \
    '--capture-all-dns[with --redirect-dns\: to any server]' \
    '--track-forwarded-dns[with --redirect-dns\: replies reach hosts behind -k]' \
    '--drop-invalid[drop packets of unknown connections]' \
    '--dual-stack[IPv6 too, if the pod has it]' \
    '--dataplane=[the proxy in the pod, or the node'\''s ztunnel]:MODE:(sidecar ambient)' \
    '--probe-address=[where the kubelet'\''s probes come from]:ADDRESS: ' \
    '--probe-address6=[where they come from in IPv6]:ADDRESS: ' \
    '--ingress[leave inbound alone\: a gateway]' \
    '*--ip-families=[ipv4 or ipv4,ipv6]:FAMILIES: _sidetrack_items ipv4 ipv6' \
    '*--dns-server=[servers for --redirect-dns]:ADDRESSES: _sidetrack_items' \
    '--plan[the rules of the given options, not the live ones]' \
    '--backend=[which backend holds the rules]:BACKEND:(auto nftables iptables-nft iptables-legacy)' \
    '*--pod=[a pod'\''s manifest in place of options]:FILE:_files' \
    '*--set=[one of Istio'\''s Helm values]:NAME=VALUE: ' \
    '*--values=[a file of Istio'\''s Helm values]:FILE:_files' \
    '--injector=[whose webhook injects the pod]:WHO:(istio sidetrack)' \
    '*--netns=[work in this network namespace]:PATH|NAME: _sidetrack_namespaces' \
    '--pid=[work in this process'\''s namespaces]:PID: _sidetrack_processes' \
    '--host[allow the caller'\''s own network namespace]' \
    '--no-sandbox[keep capabilities and system calls that are not needed]' \
    '--format=[the format of the result]:FORMAT:(text json svg)' \
    '--json[--format json]' \
    '--family=[print only this family'\''s rules]:FAMILY:(ipv4 ipv6)' \
    '--way=[only what goes out, comes in, or goes over lo]:WAY:(out in lo)' \
    '--color=[whether to colour the result]:WHEN:(auto always never)' \
    '--native-nftables[as --backend nftables]' \
    '--force-iptables-binary=[as --backend iptables-legacy, iptables-nft]:BINARY:(legacy nft)' \
    '*--log_output_level=[debug, info, warn, error, fatal or none]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--log_as_json[one JSON object per line]' \
    '*--log_target=[stdout, stderr or a path; may be repeated]:TARGET: _sidetrack_targets stdout stderr' \
    '*--log_caller=[add the source line of each message]:SCOPES: _sidetrack_items' \
    '*--log_stacktrace_level=[accepted, without effect]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--vklog=[accepted, without effect]:N: ' \
    '(-h --help)'{-h,--help}'[this text]'
}

_sidetrack_lint() {
  _arguments -s -S : \
    '(-p --envoy-port)'{-p+,--envoy-port=}'[the proxy'\''s port for outbound]:PORT: ' \
    '(-z --inbound-capture-port)'{-z+,--inbound-capture-port=}'[the proxy'\''s port for inbound]:PORT: ' \
    '(-e --inbound-tunnel-port)'{-e+,--inbound-tunnel-port=}'[the proxy'\''s port for HBONE]:PORT: ' \
    '*'{-u+,--proxy-uid=}'[the proxy'\''s uid]:UIDS: _sidetrack_items' \
    '*'{-g+,--proxy-gid=}'[the proxy'\''s gid]:GIDS: _sidetrack_items' \
    '(-m --istio-inbound-interception-mode)'{-m+,--istio-inbound-interception-mode=}'[how inbound is captured]:MODE:(REDIRECT TPROXY NONE)' \
    '*'{-b+,--istio-inbound-ports=}'[inbound\: capture these]:PORTS|'\''*'\'': _sidetrack_items \*' \
    '*'{-d+,--istio-local-exclude-ports=}'[inbound\: all but these, with -b '\''*'\'']:PORTS: _sidetrack_items' \
    '*--include-inbound-ranges=[inbound\: capture only from these]:CIDRS|'\''*'\'': _sidetrack_items \*' \
    '*--exclude-inbound-ranges=[inbound\: not from these sources]:CIDRS: _sidetrack_items' \
    '*'{-c+,--istio-exclude-interfaces=}'[leave these interfaces alone]:NAMES: _sidetrack_interfaces list' \
    '*'{-i+,--istio-service-cidr=}'[outbound\: capture these ranges]:CIDRS|'\''*'\'': _sidetrack_items \*' \
    '*'{-x+,--istio-service-exclude-cidr=}'[outbound\: not these ranges]:CIDRS: _sidetrack_items' \
    '*'{-q+,--istio-outbound-ports=}'[outbound\: these ports too, anywhere]:PORTS: _sidetrack_items' \
    '*'{-o+,--istio-local-outbound-ports-exclude=}'[outbound\: not these ports]:PORTS: _sidetrack_items' \
    '*'{-k+,--kube-virt-interfaces=}'[traffic from them is outbound]:NAMES: _sidetrack_interfaces list' \
    '(-t --istio-inbound-tproxy-mark)'{-t+,--istio-inbound-tproxy-mark=}'[the mark of TPROXY'\''s packets]:MARK: ' \
    '(-r --istio-inbound-tproxy-route-table)'{-r+,--istio-inbound-tproxy-route-table=}'[TPROXY'\''s routing table]:TABLE: ' \
    '*--exclude-uids=[outbound\: skip traffic from these UIDs]:UIDS: _sidetrack_items' \
    '*--exclude-gids=[outbound\: not of these groups]:GIDS: _sidetrack_items' \
    '*--exclude-uid-ports=[outbound\: skip traffic from these UIDs to these ports]:UIDS\:PORTS: _sidetrack_items' \
    '*--bypass-cgroup=[outbound\: not from these cgroups (v2)]:PATHS: _sidetrack_items' \
    '*--capture-udp=[inbound\: also capture these UDP ports, with -m TPROXY]:PORTS: _sidetrack_items' \
    '--redirect-dns[capture DNS to resolv.conf'\''s servers]' \
    '--capture-all-dns[with --redirect-dns\: to any server]' \
    '--track-forwarded-dns[with --redirect-dns\: replies reach hosts behind -k]' \
    '--drop-invalid[drop packets of unknown connections]' \
    '--dual-stack[IPv6 too, if the pod has it]' \
    '--dataplane=[the proxy in the pod, or the node'\''s ztunnel]:MODE:(sidecar ambient)' \
    '--probe-address=[where the kubelet'\''s probes come from]:ADDRESS: ' \
    '--probe-address6=[where they come from in IPv6]:ADDRESS: ' \
    '--ingress[leave inbound alone\: a gateway]' \
    '*--ip-families=[ipv4 or ipv4,ipv6]:FAMILIES: _sidetrack_items ipv4 ipv6' \
    '*--dns-server=[servers for --redirect-dns]:ADDRESSES: _sidetrack_items' \
    '--plan[the rules of the given options, not the live ones]' \
    '--backend=[which backend holds the rules]:BACKEND:(auto nftables iptables-nft iptables-legacy)' \
    '*--pod=[a pod'\''s manifest in place of options]:FILE:_files' \
    '*--set=[one of Istio'\''s Helm values]:NAME=VALUE: ' \
    '*--values=[a file of Istio'\''s Helm values]:FILE:_files' \
    '--injector=[whose webhook injects the pod]:WHO:(istio sidetrack)' \
    '*--netns=[work in this network namespace]:PATH|NAME: _sidetrack_namespaces' \
    '--pid=[work in this process'\''s namespaces]:PID: _sidetrack_processes' \
    '--host[allow the caller'\''s own network namespace]' \
    '--no-sandbox[keep capabilities and system calls that are not needed]' \
    '--format=[the format of the result]:FORMAT:(text json)' \
    '--json[--format json]' \
    '--color=[whether to colour the result]:WHEN:(auto always never)' \
    '--native-nftables[as --backend nftables]' \
    '--force-iptables-binary=[as --backend iptables-legacy, iptables-nft]:BINARY:(legacy nft)' \
    '*--log_output_level=[debug, info, warn, error, fatal or none]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--log_as_json[one JSON object per line]' \
    '*--log_target=[stdout, stderr or a path; may be repeated]:TARGET: _sidetrack_targets stdout stderr' \
    '*--log_caller=[add the source line of each message]:SCOPES: _sidetrack_items' \
    '*--log_stacktrace_level=[accepted, without effect]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--vklog=[accepted, without effect]:N: ' \
    '(-h --help)'{-h,--help}'[this text]'
}

_sidetrack_clean() {
  _arguments -s -S : \
    '--dataplane=[ambient\: an agent'\''s rules count, too]:MODE:(sidecar ambient)' \
    '--backend=[which backend holds the rules]:BACKEND:(auto nftables iptables-nft iptables-legacy)' \
    '--wait=[how long to wait for other writers]:DURATION: ' \
    '*--netns=[work in this network namespace]:PATH|NAME: _sidetrack_namespaces' \
    '--pid=[work in this process'\''s namespaces]:PID: _sidetrack_processes' \
    '--host[allow the caller'\''s own network namespace]' \
    '--no-sandbox[keep capabilities and system calls that are not needed]' \
    '--color=[whether to colour the result]:WHEN:(auto always never)' \
    '*--log_output_level=[debug, info, warn, error, fatal or none]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--log_as_json[one JSON object per line]' \
    '*--log_target=[stdout, stderr or a path; may be repeated]:TARGET: _sidetrack_targets stdout stderr' \
    '*--log_caller=[add the source line of each message]:SCOPES: _sidetrack_items' \
    '*--log_stacktrace_level=[accepted, without effect]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--vklog=[accepted, without effect]:N: ' \
    '(-h --help)'{-h,--help}'[this text]'
}

_sidetrack_doctor() {
  _arguments -s -S : \
    '--backend=[which backend holds the rules]:BACKEND:(auto nftables iptables-nft iptables-legacy)' \
    '*--netns=[work in this network namespace]:PATH|NAME: _sidetrack_namespaces' \
    '--pid=[work in this process'\''s namespaces]:PID: _sidetrack_processes' \
    '--host[allow the caller'\''s own network namespace]' \
    '--no-sandbox[keep capabilities and system calls that are not needed]' \
    '--format=[the format of the result]:FORMAT:(text json)' \
    '--json[--format json]' \
    '--color=[whether to colour the result]:WHEN:(auto always never)' \
    '*--log_output_level=[debug, info, warn, error, fatal or none]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--log_as_json[one JSON object per line]' \
    '*--log_target=[stdout, stderr or a path; may be repeated]:TARGET: _sidetrack_targets stdout stderr' \
    '*--log_caller=[add the source line of each message]:SCOPES: _sidetrack_items' \
    '*--log_stacktrace_level=[accepted, without effect]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--vklog=[accepted, without effect]:N: ' \
    '(-h --help)'{-h,--help}'[this text]'
}

_sidetrack_pods() {
  _arguments -s -S : \
    '--repair[apply what is recorded where it differs]' \
    '*--metrics=[write metrics for node_exporter'\''s textfiles]:FILE:_files' \
    '--pod-timeout=[time limit for each pod]:DURATION: ' \
    '*--records=[the CNI plugin'\''s records]:PATH:_files' \
    '--no-sandbox[keep capabilities and system calls that are not needed]' \
    '--format=[the format of the result]:FORMAT:(text json)' \
    '--json[--format json]' \
    '*--log_output_level=[debug, info, warn, error, fatal or none]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--log_as_json[one JSON object per line]' \
    '*--log_target=[stdout, stderr or a path; may be repeated]:TARGET: _sidetrack_targets stdout stderr' \
    '*--log_caller=[add the source line of each message]:SCOPES: _sidetrack_items' \
    '*--log_stacktrace_level=[accepted, without effect]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--vklog=[accepted, without effect]:N: ' \
    '(-h --help)'{-h,--help}'[this text]'
}

_sidetrack_args() {
  _arguments -s -S : \
    '*'{-f+,--filename=}'[the manifest, YAML or JSON; - for standard input]:FILE:_files' \
    '*--set=[one of Istio'\''s Helm values]:NAME=VALUE: ' \
    '*--values=[a file of Istio'\''s Helm values]:FILE:_files' \
    '--injector=[whose webhook injects the pod]:WHO:(istio sidetrack)' \
    '--why[which annotation or default gives each argument]' \
    '--no-sandbox[keep capabilities and system calls that are not needed]' \
    '--format=[the format of the result]:FORMAT:(text json)' \
    '--json[--format json]' \
    '*--log_output_level=[debug, info, warn, error, fatal or none]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--log_as_json[one JSON object per line]' \
    '*--log_target=[stdout, stderr or a path; may be repeated]:TARGET: _sidetrack_targets stdout stderr' \
    '*--log_caller=[add the source line of each message]:SCOPES: _sidetrack_items' \
    '*--log_stacktrace_level=[accepted, without effect]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--vklog=[accepted, without effect]:N: ' \
    '(-h --help)'{-h,--help}'[this text]'
}

_sidetrack_inject() {
  _arguments -s -S : \
    '*'{-f+,--filename=}'[the manifest, YAML or JSON; - for standard input]:FILE:_files' \
    '*--template=[the containers and volumes to put into pods]:FILE:_files' \
    '*--set=[one of Istio'\''s Helm values]:NAME=VALUE: ' \
    '*--values=[a file of Istio'\''s Helm values]:FILE:_files' \
    '--no-sandbox[keep capabilities and system calls that are not needed]' \
    '*--log_output_level=[debug, info, warn, error, fatal or none]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--log_as_json[one JSON object per line]' \
    '*--log_target=[stdout, stderr or a path; may be repeated]:TARGET: _sidetrack_targets stdout stderr' \
    '*--log_caller=[add the source line of each message]:SCOPES: _sidetrack_items' \
    '*--log_stacktrace_level=[accepted, without effect]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--vklog=[accepted, without effect]:N: ' \
    '(-h --help)'{-h,--help}'[this text]'
}

_sidetrack_cni() {
  _arguments -s -S : \
    '1:install|uninstall|status:(install uninstall status)' \
    '(-p --envoy-port)'{-p+,--envoy-port=}'[the proxy'\''s port for outbound]:PORT: ' \
    '(-z --inbound-capture-port)'{-z+,--inbound-capture-port=}'[the proxy'\''s port for inbound]:PORT: ' \
    '(-e --inbound-tunnel-port)'{-e+,--inbound-tunnel-port=}'[the proxy'\''s port for HBONE]:PORT: ' \
    '*'{-u+,--proxy-uid=}'[the proxy'\''s uid]:UIDS: _sidetrack_items' \
    '*'{-g+,--proxy-gid=}'[the proxy'\''s gid]:GIDS: _sidetrack_items' \
    '(-t --istio-inbound-tproxy-mark)'{-t+,--istio-inbound-tproxy-mark=}'[the mark of TPROXY'\''s packets]:MARK: ' \
    '(-r --istio-inbound-tproxy-route-table)'{-r+,--istio-inbound-tproxy-route-table=}'[TPROXY'\''s routing table]:TABLE: ' \
    '--redirect-dns[capture DNS to resolv.conf'\''s servers]' \
    '--drop-invalid[drop packets of unknown connections]' \
    '--dual-stack[IPv6 too, if the pod has it]' \
    '--dataplane=[the proxy in the pod, or the node'\''s ztunnel]:MODE:(sidecar ambient)' \
    '--probe-address=[where the kubelet'\''s probes come from]:ADDRESS: ' \
    '--probe-address6=[where they come from in IPv6]:ADDRESS: ' \
    '--watch[keep running, and reinstall when removed]' \
    '--platform=[the folders of this platform]:NAME:(aks eks gke k3s kind microk8s minikube openshift rke2)' \
    '*--bin-dir=[where the runtime looks for plugins]:PATH:_files' \
    '*--net-dir=[the runtime'\''s CNI configuration]:PATH:_files' \
    '*--exclude-namespaces=[install\: do not intercept pods of these]:NAMES: _sidetrack_interfaces list' \
    '*--plugin-log=[install\: where the plugin logs]:PATH:_files' \
    '--allow-dynamic[install\: allow a program that needs libraries]' \
    '--now[uninstall\: remove the program, whichever pods need it]' \
    '--backend=[which backend holds the rules]:BACKEND:(auto nftables iptables-nft iptables-legacy)' \
    '*--records=[the CNI plugin'\''s records]:PATH:_files' \
    '--no-sandbox[keep capabilities and system calls that are not needed]' \
    '--format=[the format of the result]:FORMAT:(text json)' \
    '--json[--format json]' \
    '*--log_output_level=[debug, info, warn, error, fatal or none]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--log_as_json[one JSON object per line]' \
    '*--log_target=[stdout, stderr or a path; may be repeated]:TARGET: _sidetrack_targets stdout stderr' \
    '*--log_caller=[add the source line of each message]:SCOPES: _sidetrack_items' \
    '*--log_stacktrace_level=[accepted, without effect]:\[SCOPE\:\]LEVEL: _sidetrack_items debug info warn error fatal none' \
    '--vklog=[accepted, without effect]:N: ' \
    '(-h --help)'{-h,--help}'[this text]'
}

_sidetrack_completion() {
  _arguments -s -S : \
    '1:bash|zsh|fish:(bash zsh fish)' \
    '(-h --help)'{-h,--help}'[this text]'
}

_sidetrack() {
  local -a names=(
    'apply:program the rules in this pod'
    'render:print what apply would program; touch nothing'
    'diff:what apply would change; exit 6 if anything'
    'verify:check that rules and routes are as requested; exit 6 if not'
    'show:what is programmed and by whom, with counters and reasons'
    'explain:which rule decides about this packet, and why'
    'map:what becomes of all traffic, and which option is the reason'
    'lint:options or live rules\: what has no effect, loops or escapes'
    'clean:remove every trace, whichever version, flags or backend left it'
    'doctor:what this kernel and container allow, and what is missing'
    'pods:the node'\''s pods\: what is captured, and whether as recorded'
    'args:what istio-init gets for a pod'\''s manifest, and why'
    'inject:put istio-init and a proxy of your own into a pod'\''s manifest'
    'cni:the CNI plugin of this node'
    'completion:print the completion script for a shell'
  )
  if [[ $service == istio-iptables ]]; then
    _sidetrack_apply
    return
  fi
  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
    _describe command names
    compadd -- istio-iptables help version
    return
  fi
  case $words[2] in
    -*)
      if (( CURRENT == 2 )); then compadd -- --version; fi
      _sidetrack_apply ;;
    help) if (( CURRENT == 3 )); then _describe command names; fi ;;
    istio-iptables) shift words; (( CURRENT-- )); _sidetrack_apply ;;
    *)
      if [[ -n ${(M)names:#$words[2]:*} ]]; then
        shift words
        (( CURRENT-- ))
        _sidetrack_$words[1]
      fi ;;
  esac
}

# Sourced, or found by the shell under the name of the function.
if [[ $funcstack[1] == _sidetrack ]]; then _sidetrack "$@"; else compdef _sidetrack sidetrack istio-iptables; fi
