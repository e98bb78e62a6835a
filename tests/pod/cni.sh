# Sourced by kubernetes.sh: pods whose rules the CNI plugin programs. They have annotations, no init container, and no NET_ADMIN.
conflist=/etc/cni/net.d/10-pods.conflist
plugins_are() { is "$(jq -r '[.plugins[].type] | join(" ")' "$conflist")" "$1"; }
is_otherwise_unchanged() { # but for the plugin's entry
  is "$(jq --sort-keys '.plugins |= map(select(.type != "sidetrack-cni"))' "$conflist")" "$(jq --sort-keys . "$node/conflist")"
}
daemon_pod() { kubectl get pods --selector "app=$1" -o 'jsonpath={.items[0].metadata.name}'; }
daemon_is_ready() { is "$(kubectl get daemonset "$1" -o 'jsonpath={.status.desiredNumberScheduled} {.status.numberReady}')" "1 1"; }
without_sidecar='.spec.containers |= map(select(.name == "app") | del(.startupProbe, .livenessProbe))'
all_wait_with() { # POD REASON: its containers
  is "$(field "$1" '[.status.containerStatuses[].state.waiting.reason] | unique | join(" ")')" "$2"
}
is_untouched() { # POD
  answers "http://$(address "$1" 0):8080/" "app on 8080: from 198.51.100.10, sidecar: " && "$program" diff --clean --pid "$(process "$1")"
}
had_no_capability() { # POD: its containers; the runtime's own, which holds the namespaces, has no name
  local allowed
  allowed=$(awk -F'\t' -v pod="$1" '$1 == pod && $2 != "" { print $2, $3 }' "$node/notes/allowed")
  grep -q capabilities <<<"$allowed" && ! grep CAP_ <<<"$allowed"
}

state_is() { # POD STATE, as `sidetrack pods` says; it exits with 6 when any pod is not as recorded
  local seen
  seen=$("$program" pods --json || [ $? = 6 ])
  is "$(jq -r --arg pod "$1" '.pods[] | select(.pod == $pod) | .state' <<<"$seen")" "$2"
}

tproxy_sources=(127.0.0.6 ::6)
[ -z "$envoy" ] || tproxy_sources=(198.51.100.10 2001:db8:51::10)
cni=$(manifest pod-cni.yaml -r .metadata.name) cni_tproxy=$(manifest pod-cni-tproxy.yaml -r .metadata.name)
cp "$conflist" "$node/conflist"
programs=$(ls /opt/cni/bin)
command kubectl apply -f container/cni.yaml >/dev/null
namespace=kube-system check "cni.yaml: becomes ready" eventually 120 daemon_is_ready sidetrack-cni
check "cni.yaml: the plugin is the last of the conflist" plugins_are "bridge sidetrack-cni"
check "cni.yaml: the conflist is unchanged otherwise" is_otherwise_unchanged
check "cni.yaml: its container had no capability" had_no_capability "$(namespace=kube-system daemon_pod sidetrack-cni)"

manifest pod-cni.yaml . | start
manifest pod-cni-tproxy.yaml . | start
manifest pod-cni.yaml '.metadata.name = "cni-bad" | .metadata.annotations["traffic.sidecar.istio.io/includeOutboundPorts"] = "80,70000"' | start
namespace=kube-system manifest pod-cni.yaml '.metadata.name = "cni-excluded" | '"$without_sidecar"' | .spec.volumes |= map(select(.name != "sidecar"))' |
  namespace=kube-system start
namespace=kube-system kubectl apply -f container/config.yaml >/dev/null # the app's

# ---- traffic
check "$cni: becomes ready" becomes_ready "$cni"
intercepted "$cni" 127.0.0.6 ::6 "$envoy"
check "$cni: it has no init container" is "$(field "$cni" '.spec.initContainers | length')" 0
check "$cni: no container of it had a capability" had_no_capability "$cni"
check "$cni: sidetrack pods says that it is as recorded" state_is "$cni" as_recorded
check "$cni_tproxy: becomes ready" becomes_ready "$cni_tproxy"
intercepted "$cni_tproxy" "${tproxy_sources[@]}" "$envoy"
namespace=kube-system check "cni-excluded, of an excluded namespace: becomes ready" becomes_ready cni-excluded
namespace=kube-system check "cni-excluded, of an excluded namespace: is left untouched" is_untouched cni-excluded
check "cni-bad: an event names the annotation and the value" eventually 60 events_say cni-bad \
  "traffic.sidecar.istio.io/includeOutboundPorts: '70000'"

# ---- another hand writes the conflist
cp "$node/conflist" "$conflist"
check "--watch: a conflist that is written again gets the plugin again" eventually 30 plugins_are "bridge sidetrack-cni"
cp "$node/conflist" "$conflist.new"
mv "$conflist.new" "$conflist"
check "--watch: and so does one that is replaced" eventually 30 plugins_are "bridge sidetrack-cni"

# ---- the node restarts: containerd and the kubelet end, and so does one pod's sandbox
sandbox() { # POD: the process that holds its namespaces
  local net pause
  net=$(readlink "/proc/$(process "$1")/ns/net")
  for pause in $(pgrep -x pause); do [ "$(readlink "/proc/$pause/ns/net")" != "$net" ] || echo "$pause"; done
}
restarted() {
  local daemon
  for daemon in kubelet containerd; do [ ! -e "$node/restart/$daemon" ] || { echo "$daemon has not ended"; return 1; }; done
  ctr -a "$node/containerd.sock" version
}
moved() { # POD FROM
  [ "$(address "$1" 0)" != "$2" ] && ready "$1"
}
before=$(address "$cni_tproxy" 0)
touch "$node"/restart/{kubelet,containerd}
kill -KILL "$(sandbox "$cni_tproxy")" "$(cat "$node/kubelet.pid")" "$(cat "$node/containerd.pid")"
check "restarted node: containerd and the kubelet run again" eventually 60 restarted
manifest pod-cni.yaml '.metadata.name = "cni-new"' | start
check "restarted node: a new pod becomes ready" becomes_ready cni-new
when="restarted node: " intercepted cni-new 127.0.0.6 ::6
when="restarted node: " intercepted "$cni" 127.0.0.6 ::6
check "restarted node: a pod whose sandbox ended has a new one" eventually 120 moved "$cni_tproxy" "$before"
when="restarted node: " intercepted "$cni_tproxy" "${tproxy_sources[@]}"
for name in "$cni" "$cni_tproxy" cni-new; do
  check "restarted node: sidetrack pods says that $name is as recorded" state_is "$name" as_recorded
done
check "cni-bad: still waits in ContainerCreating" all_wait_with cni-bad ContainerCreating

# ---- uninstalled
kubectl delete --now pod cni-bad >/dev/null
uninstalls() { # the commands at the head of the file
  local command
  sed -n 's/^#   kubectl //p' container/cni-uninstall.yaml | sed 's,cni-uninstall.yaml,container/&,' >"$node/uninstall"
  is "$(wc -l <"$node/uninstall")" 3 || return
  while read -r command; do timeout 120 kubectl $command || return; done <"$node/uninstall"
}
namespace=kube-system check "cni-uninstall.yaml: the commands at its head succeed" uninstalls
check "cni-uninstall.yaml: the plugin is not in the conflist" plugins_are bridge
check "cni-uninstall.yaml: the conflist is unchanged otherwise" is_otherwise_unchanged
check "cni-uninstall.yaml: the program stays for the pods that were made with it" \
  is "$(ls /opt/cni/bin)" "$(printf '%s\n' $programs sidetrack-cni | sort)"
manifest pod-cni.yaml '.metadata.name = "cni-after" | '"$without_sidecar" | start
check "cni-after, a pod that starts now: becomes ready" becomes_ready cni-after
check "cni-after, a pod that starts now: is left untouched" is_untouched cni-after
when="uninstalled: " intercepted "$cni" 127.0.0.6 ::6
when="uninstalled: " intercepted "$cni_tproxy" "${tproxy_sources[@]}"
