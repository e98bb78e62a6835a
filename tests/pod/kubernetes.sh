#!/usr/bin/env bash
# What scripts/test-kubernetes checks, run on the node:  kubernetes.sh PROGRAM NGINX-ROOT CONTROL-FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/pod/checks.sh
program=$1 nginx=$2 control=$3
node=/run/node

# ---- pods
manifest() { # FILE [jq options] FILTER: the pod of a file of container/, changed
  local file=$1
  shift
  kubectl create --dry-run=client --validate=false -o json -f "container/$file" | jq "$@"
}
start() { # a pod on standard input; there is no scheduler here, so it is bound by hand
  local pod name
  pod=$(cat)
  name=$(jq -r .metadata.name <<<"$pod")
  kubectl create -f - <<<"$pod" >/dev/null
  jq -n --arg name "$name" '{apiVersion: "v1", kind: "Binding", metadata: {$name}, target: {apiVersion: "v1", kind: "Node", name: "node1"}}' |
    kubectl create --raw "/api/v1/namespaces/default/pods/$name/binding" -f - >/dev/null
}
field() { kubectl get pod "$1" -o json | jq -r "$2"; }
address() { field "$1" ".status.podIPs[$2].ip"; }
ready() { is "$(field "$1" '.status.conditions[] | select(.type == "Ready") | .status')" True; }
becomes_ready() { eventually 120 ready "$1" || { kubectl describe pod "$1"; kubectl logs "$1" -c istio-init; return 1; }; }
init_state='.status.initContainerStatuses[] | select(.name == $name) | .state, .lastState | .terminated // empty'
init_field() { # POD CONTAINER FIELD, of its last end
  kubectl get pod "$1" -o json | jq -r --arg name "$2" "[$init_state][0].$3"
}
init_ended_with() { is "$(init_field "$1" "$2" exitCode)" "$3"; }
app_never_started() {
  is "$(field "$1" '[.status.containerStatuses[] | select(.started or .ready or .restartCount > 0 or .state.running or .state.terminated)] | length')" 0
}
one_line() { # TEXT WORDS…: a single line of the text has all the words
  local text=$1 word
  shift
  for word in "$@"; do text=$(grep -F -- "$word" <<<"$text") || { echo "no line has '$word' and what comes before"; return 1; }; done
  is "$(wc -l <<<"$text")" 1
}
logs_say() { one_line "$(kubectl logs "$1" -c "$2")" "${@:3}"; }
description_says() { one_line "$(kubectl describe pod "$1")" "${@:2}"; }
events_say() { kubectl get events --field-selector "involvedObject.name=$1" -o json | jq -e --arg w "$2" '.items[] | select(.message | contains($w))'; }

kubectl apply -f container/config.yaml >/dev/null
serve_target "$nginx"

# All at once: what they wait for, they wait for together.
manifest pod.yaml . | start
manifest pod.yaml '.metadata.name = "least-privilege" | .spec.initContainers[0].securityContext |= (
  .readOnlyRootFilesystem = true | .capabilities.add = ["NET_ADMIN"])' | start
manifest pod-tproxy.yaml . | start
manifest pod.yaml '.metadata.name = "bad-port" | .spec.initContainers[0].args[2] = "70000"' | start
manifest pod.yaml '.metadata.name = "not-permitted" | .spec.initContainers[0].securityContext.capabilities.add = []' | start
manifest pod-validation.yaml . | start
manifest pod-validation.yaml '.metadata.name = "not-intercepted" | del(.spec.initContainers[0])' | start

# ---- traffic, under the security contexts of istio-init
pod=sidetrack-example
check "$pod: becomes ready" becomes_ready "$pod"
four=$(address "$pod" 0) six=$(address "$pod" 1)
interception "$pod" "$four" "$six"
check "least-privilege (NET_ADMIN alone, read-only root): becomes ready" becomes_ready least-privilege
interception least-privilege "$(address least-privilege 0)" "$(address least-privilege 1)"
tproxy=sidetrack-example-tproxy
check "$tproxy: becomes ready" becomes_ready "$tproxy"
interception "$tproxy" "$(address "$tproxy" 0)" "$(address "$tproxy" 1)"

# ---- the kubelet's probes
probed() { # the app answers its liveness probe only through the sidecar: had one failed thrice, the kubelet had restarted it
  field "$pod" '.spec.containers[] | select(.name == "app") | .livenessProbe.httpGet.port' | grep -qx 8080 &&
    is "$(request -o /dev/null -w '%{http_code}' "http://$four:9080/healthz")" 503 &&
    is "$(field "$pod" '[.status.containerStatuses[].restartCount] | add')" 0
}
up_for() { [ "$(field "$pod" "now - (.status.containerStatuses[] | select(.name == \"app\") | .state.running.startedAt | fromdate) | floor")" -ge "$1" ]; }
check "$pod: the kubelet's readiness probe works on the excluded port 15021, past the sidecar's interception" \
  answers_without_sidecar "http://$four:15021/healthz/ready" "$(request "http://$four:15021/healthz/ready" | tail -1)"
eventually 30 up_for 6
check "$pod: the kubelet's liveness probe passes the sidecar" probed

# ---- exit codes and reasons
check "bad-port: istio-init ends with 2" eventually 60 init_ended_with bad-port istio-init 2
check "bad-port: the app does not start" app_never_started bad-port
check "bad-port: kubectl logs says why in one line" logs_say bad-port istio-init 70000
check "bad-port: kubectl describe says why in one line" description_says bad-port Message: 70000
check "bad-port: the pod's events say that istio-init fails" eventually 60 events_say bad-port "restarting failed container"
check "not-permitted: istio-init ends with 4" eventually 60 init_ended_with not-permitted istio-init 4
check "not-permitted: the app does not start" app_never_started not-permitted
check "not-permitted: kubectl logs names the capability in one line" logs_say not-permitted istio-init NET_ADMIN

# ---- istio-validation
validation=sidetrack-example-validation
check "$validation: becomes ready" becomes_ready "$validation"
check "$validation: istio-validation (uid 1337, no capabilities, read-only root) ends with 0" init_ended_with "$validation" istio-validation 0
check "not-intercepted: istio-validation ends with 126" eventually 60 init_ended_with not-intercepted istio-validation 126
check "not-intercepted: the app does not start" app_never_started not-intercepted
check "not-intercepted: kubectl logs says why in one line" logs_say not-intercepted istio-validation rule

# ---- istio-init again, while traffic flows
cri() { command cri "unix://$node/containerd.sock" "$@"; }
load() { # requests, each by a connection of its own, until the file is gone; the failures' reasons
  while [ -e "$node/load" ]; do
    request -o /dev/null -w '%{http_code}\n' "http://$four:8080/" || true
    request -o /dev/null -w '%{http_code}\n' "http://$four:9080/fetch/198.51.100.10:80/" || true
  done >"$node/load.$1" 2>&1
}
requests() { cat "$node"/load.? | wc -l; }
init_ran_again() {
  local now
  now=$(cri list "$pod" istio-init | awk '$2 == "CONTAINER_EXITED" && $5 == 0 { print $1 }')
  [ -n "$now" ] && [ "$now" != "$before" ]
}
more_requests() { [ "$(requests)" -ge "$1" ]; }
touch "$node/load"
for worker in 1 2 3; do load "$worker" & done
request "http://$four:8080/[1-2000]" --no-globoff -o /dev/null -w '%{num_connects} %{http_code}\n' >"$node/kept" 2>&1 &
kept=$!
eventually 30 more_requests 50 || true
before=$(cri list "$pod" istio-init | awk '{ print $1 }')
restarts() { cri remove "$before" && eventually 90 init_ran_again; }
check "$pod: a removed istio-init is run again by the kubelet, and ends with 0" restarts
eventually 30 more_requests $(($(requests) + 100)) || true
rm "$node/load"
wait "$kept" || true
no_request_lost() { is "$(cat "$node"/load.? | sort | uniq -c | awk '{ print $2 }')" 200; }
connection_kept() { is "$(awk '{ connects += $1; codes[$2]++ } END { print connects, codes[200] }' "$node/kept")" "1 2000"; }
wait_for_load() { is "$(jobs -rp | wc -l)" 1; } # the target server stays
eventually 30 wait_for_load || true
check "$pod: meanwhile none of $(requests) connections was lost" no_request_lost
check "$pod: meanwhile a connection stayed open over 2000 requests" connection_kept
check "$pod: a client's request still passes the sidecar" answers "http://$four:8080/" "app on 8080: from 127.0.0.6, sidecar: inbound"

# ---- from the node, and from an ephemeral container
process() { ctr -a "$node/containerd.sock" -n k8s.io tasks ls | awk -v id="$(field "$1" '.status.containerStatuses[] | select(.name == "app") | .containerID' | sed 's,.*//,,')" '$1 == id { print $2 }'; }
pid=$(process "$pod")
says() { # WORDS… -- COMMAND…
  local words=() said word
  while [ "$1" != -- ]; do words+=("$1"); shift; done
  shift
  said=$("$@") || { echo "$said"; return 1; }
  for word in "${words[@]}"; do grep -qF -- "$word" <<<"$said" || { echo "no '$word' in:"; echo "$said"; return 1; }; done
}
check "node: sidetrack show --pid tells the rules of the pod" says ISTIO_INBOUND 15006 ISTIO_OUTPUT 15001 -- "$program" show --pid "$pid"
check "node: sidetrack explain --pid: a client's request" says 15006 -- "$program" explain --pid "$pid" in tcp :8080 --from 198.51.100.10 --brief
check "node: sidetrack explain --pid: the app's request" says 15001 -- "$program" explain --pid "$pid" out tcp 198.51.100.10:80 --uid 1000 --brief
check "node: nsenter and sidetrack show" says ISTIO_INBOUND 15006 -- nsenter -t "$pid" -n "$program" show
debug() { # what `kubectl debug --profile=netadmin` of a newer kubectl asks for
  jq -n '{apiVersion: "v1", kind: "EphemeralContainers", metadata: {name: "sidetrack-example"}, ephemeralContainers: [{
      name: "debugger", image: "localhost/sidetrack:0.1.0", imagePullPolicy: "IfNotPresent", args: ["show"], targetContainerName: "app",
      terminationMessagePolicy: "File", securityContext: {capabilities: {add: ["NET_ADMIN"]}}}]}' |
    kubectl replace --raw "/api/v1/namespaces/default/pods/$pod/ephemeralcontainers" -f - >/dev/null &&
    eventually 60 says ISTIO_INBOUND 15006 -- kubectl logs "$pod" -c debugger
}
check "ephemeral container: sidetrack show tells the rules of the pod" debug

# ---- what cannot be run on this version
native_sidecar() {
  manifest pod-native-sidecar.yaml . | jq -e '[.spec.initContainers[] | [.name, .restartPolicy]] == [["istio-init", null], ["istio-proxy", "Always"]]' &&
    manifest pod-native-sidecar.yaml 'del(.spec.initContainers[1] | .restartPolicy, .startupProbe)' | kubectl create --dry-run=server -f -
}
check "pod-native-sidecar.yaml: accepted but for what needs Kubernetes 1.28; NOT RUN on $(kubectl version -o json | jq -r .serverVersion.gitVersion)" \
  native_sidecar

# ---- measured
echo
echo "istio-init              by the runtime   by the kubelet (s)   peak memory of its container"
while read -r name; do
  while read -r _ _ started finished code; do
    printf '%-26s %6s ms   %s to %s   %6s KiB   exit code %s\n' "$name" "$(awk -v a="$started" -v b="$finished" 'BEGIN { printf "%.1f", (b - a) / 1e6 }')" \
      "$(init_field "$name" istio-init startedAt | sed 's/.*T//')" "$(init_field "$name" istio-init finishedAt | sed 's/.*T//')" \
      "$(awk -F'\t' -v pod="$name" '$1 == pod && $2 == "istio-init" { print int($3 / 1024); exit }' "$node/memory/peaks" 2>/dev/null)" "$code"
  done < <(cri list "$name" istio-init | tail -1)
done <<PODS
$pod
least-privilege
$tproxy
bad-port
PODS
echo "(bad-port ends before it does anything: what the runtime itself takes)"
echo
summary
