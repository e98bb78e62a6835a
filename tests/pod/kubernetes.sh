#!/usr/bin/env bash
# The manifests of container/ on the Kubernetes of scripts/test istio, without Istio; run on its node:  kubernetes.sh PROGRAM IMAGES
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/container.sh
. tests/pod/checks.sh
. tests/pod/pods.sh
program=$1 images=$2

serve_target "$images/nginx"
mkdir "$node/bin"
ln -s "$program" "$node/bin/sidetrack"
export SIDETRACK_PROGRAM=$program PATH=$node/bin:$PATH

haproxy_manifests "$node/haproxy"
manifests=container pod=sidetrack-example envoy=yes
if [ ! -f "$images/envoy.tar" ]; then
  echo "NOT RUN: the pods with Envoy, which cannot be downloaded; their checks run with HAProxy"
  manifests=$node/haproxy pod=sidetrack-example-haproxy envoy=''
fi
tproxy=$(manifest pod-tproxy.yaml -r .metadata.name) native=$(manifest pod-native-sidecar.yaml -r .metadata.name) validation=$(manifest pod-validation.yaml -r .metadata.name)

# All at once: what they wait for, they wait for together.
kubectl apply -f tests/pod/haproxy.yaml >/dev/null
check "container/README.md, Use it with your own pod: its commands succeed" page container/README.md "Use it with your own pod" \
  -e "s,container/\([^/]*\.yaml\),$manifests/\1,g"
manifest pod-tproxy.yaml . | start
manifest pod-native-sidecar.yaml . | start
[ -z "$envoy" ] || with_haproxy pod-tproxy.yaml . | start
with_haproxy pod.yaml '.metadata.name = "least-privilege" | .spec.initContainers[0].securityContext |= (
  .readOnlyRootFilesystem = true | .capabilities.add = ["NET_ADMIN"])' | start
manifest pod.yaml '.metadata.name = "bad-port" | .spec.initContainers[0].args[2] = "70000"' | start
manifest pod.yaml '.metadata.name = "not-permitted" | .spec.initContainers[0].securityContext.capabilities.add = []' | start
manifest pod-validation.yaml . | start
manifest pod-validation.yaml '.metadata.name = "not-intercepted" | del(.spec.initContainers[0])' | start

# ---- traffic, under the security contexts of istio-init
check "$pod: becomes ready" becomes_ready "$pod"
check "$pod: kubectl logs says what was installed, in one line" logs_say "$pod" istio-init installed rules
intercepted "$pod" 127.0.0.6 ::6 "$envoy"
four=$(address "$pod" 0)
check "least-privilege (NET_ADMIN alone, read-only root; HAProxy): becomes ready" becomes_ready least-privilege
intercepted least-privilege 127.0.0.6 ::6
if [ -n "$envoy" ]; then
  check "$tproxy: becomes ready" becomes_ready "$tproxy"
  intercepted "$tproxy" 198.51.100.10 2001:db8:51::10 "$envoy"
fi
check "sidetrack-example-tproxy-haproxy: becomes ready" becomes_ready sidetrack-example-tproxy-haproxy
intercepted sidetrack-example-tproxy-haproxy 127.0.0.6 ::6

# ---- as Istio would
registry=127.0.0.1:5000
cat >"$node/registry.yaml" <<K
version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: $node/registry}}
http: {addr: "$registry"}
K
mkdir -p "$node/home/.config/containers"
printf '[[registry]]\nlocation = "%s"\ninsecure = true\n' "$registry" >"$node/home/.config/containers/registries.conf"
docker-registry serve "$node/registry.yaml" >"$node/registry.log" 2>&1 &
eventually 30 curl -fsS "http://$registry/v2/" || true
make_namespace istio-system
kubectl create configmap istio-sidecar-injector --namespace istio-system --from-literal=config=untouched \
  --from-literal=values='{"global": {"hub": "docker.io/istio", "proxy_init": {"image": "proxyv2", "forceApplyIptables": false}}}' >/dev/null
SIDETRACK_CACHE=$cache HOME=$node/home check "README.md, Use it with Istio: its commands succeed" \
  page README.md "Use it with Istio" -e "s,REGISTRY,$registry,g" -e '/^helm/d'
check "docs/upgrade.md, ConfigMap: its first command succeeds" page docs/upgrade.md ConfigMap -e "s,REGISTRY,$registry,g" -e '/"proxyv2"/d'
injector() { kubectl get configmap istio-sidecar-injector --namespace istio-system -o json | jq -cr "$1"; }
image=$(injector '.data.values | fromjson | .global.proxy_init.image')
check "docs/upgrade.md, ConfigMap: the injector's image is changed, and nothing else" is "$(injector '[.data.config, (.data.values | fromjson)]')" \
  "[\"untouched\",{\"global\":{\"hub\":\"docker.io/istio\",\"proxy_init\":{\"image\":\"$registry/sidetrack:0.2.0\",\"forceApplyIptables\":false}}}]"
manifest pod.yaml --arg image "$image" '.metadata.name = "injected" | .spec.initContainers[0].image = $image' | start
check "injected: a pod with that image, from the registry, becomes ready" becomes_ready injected
check "injected: the kubelet pulled the image" eventually 30 events_say injected "Successfully pulled image \"$image\""
check "injected: a client's request passes the sidecar" answers "http://$(address injected 0):8080/" "app on 8080: from 127.0.0.6, sidecar: inbound"

# ---- the security contexts, as the runtime got them
allowed() { is "$(awk -F'\t' -v pod="$1" -v name="$2" '$1 == pod && $2 == name { print $3; exit }' "$node/notes/allowed")" "$3"; }
check "$pod: istio-init had what Istio gives it" allowed "$pod" istio-init \
  "uid 0 gid 0 capabilities CAP_NET_ADMIN+CAP_NET_RAW read-only false no-new-privileges true seccomp true"
check "least-privilege: istio-init had NET_ADMIN alone and a read-only root" allowed least-privilege istio-init \
  "uid 0 gid 0 capabilities CAP_NET_ADMIN read-only true no-new-privileges true seccomp true"
check "$validation: istio-validation had no capability" allowed "$validation" istio-validation \
  "uid 1337 gid 1337 capabilities  read-only true no-new-privileges true seccomp true"

# ---- the kubelet's probes
probed() { # the app answers its liveness probe only through the sidecar: had one failed thrice, the kubelet had restarted it
  field "$pod" '.spec.containers[] | select(.name == "app") | .livenessProbe.httpGet.port' | grep -qx 8080 &&
    is "$(request -o /dev/null -w '%{http_code}' "http://$four:9080/healthz")" 503 &&
    is "$(field "$pod" '[.status.containerStatuses[].restartCount] | add')" 0
}
up_for() { [ "$(field "$pod" "now - (.status.containerStatuses[] | select(.name == \"app\") | .state.running.startedAt | fromdate) | floor")" -ge "$1" ]; }
check "$pod: the kubelet's readiness probe works on the excluded port 15021, past the sidecar's interception" \
  is "$(request -o /dev/null -w '%{http_code} %header{x-sidecar}' "http://$four:15021/healthz/ready")" "200 "
eventually 30 up_for 6 || true
check "$pod: the kubelet's liveness probe passes the sidecar" probed

# ---- exit codes and reasons
check "bad-port: istio-init ends with 2" eventually 60 init_ended_with bad-port istio-init 2
check "bad-port: the app does not start" app_never_started bad-port
check "bad-port: kubectl logs says why in one line" eventually 60 logs_say bad-port istio-init 70000
check "bad-port: kubectl describe says why in one line" eventually 60 description_says bad-port Message: 70000
check "bad-port: the pod's events say that istio-init fails" eventually 60 events_say bad-port "restarting failed container"
check "not-permitted: istio-init ends with 4" eventually 60 init_ended_with not-permitted istio-init 4
check "not-permitted: the app does not start" app_never_started not-permitted
check "not-permitted: kubectl logs names the capability in one line" eventually 60 logs_say not-permitted istio-init NET_ADMIN

# ---- istio-validation
check "$validation: becomes ready" becomes_ready "$validation"
check "$validation: istio-validation (uid 1337, no capabilities, read-only root) ends with 0" init_ended_with "$validation" istio-validation 0
check "not-intercepted: istio-validation ends with 126" eventually 60 init_ended_with not-intercepted istio-validation 126
check "not-intercepted: the app does not start" app_never_started not-intercepted
check "not-intercepted: kubectl logs says why in one line" eventually 60 logs_say not-intercepted istio-validation "validation failed" redirected

# ---- istio-init's rules again, while traffic flows
load() { # requests, each by a connection of its own, until the file is gone: what was answered, or why nothing was
  while [ -e "$node/load" ]; do
    request "http://$four:8080/" || true
    request "http://$four:9080/fetch/198.51.100.10:80/" || true
  done >"$node/load.$1" 2>&1
}
requests() { cat "$node"/load.? | wc -l; }
more_requests() { [ "$(requests)" -ge "$1" ]; }
touch "$node/load"
workers=()
for worker in 1 2 3; do load "$worker" & workers+=($!); done
request "http://$four:8080/[1-2000]" --no-globoff -o /dev/null -w '%{num_connects} %{http_code}\n' >"$node/kept" 2>&1 &
kept=$!
eventually 30 more_requests 50 || true
programs_again() { # in an ephemeral container: the kubelet runs istio-init only once while the app is there
  local args
  mapfile -t args < <(field "$pod" '.spec.initContainers[] | select(.name == "istio-init").args[]')
  kubectl debug "$pod" --profile=netadmin --image=localhost/sidetrack:0.2.0 --container=again --env=ISTIO_DUAL_STACK=true -- \
    sidetrack "${args[@]}" >/dev/null 2>&1
  eventually 60 ephemeral_ended_with 0 again
}
ephemeral_ended_with() { is "$(field "$pod" ".status.ephemeralContainerStatuses[] | select(.name == \"$2\").state.terminated.exitCode")" "$1"; }
check "$pod: istio-init's arguments once more, in an ephemeral container, end with 0" programs_again
eventually 30 more_requests $(($(requests) + 100)) || true
rm "$node/load"
wait "$kept" "${workers[@]}" || true
no_request_lost() {
  is "$(cat "$node"/load.? | sort -u)" "app on 8080: from 127.0.0.6, sidecar: inbound
target on 198.51.100.10:80: from $four, sidecar: outbound"
}
connection_kept() { is "$(awk '{ connects += $1; codes[$2]++ } END { print connects, codes[200] }' "$node/kept")" "1 2000"; }
check "$pod: meanwhile none of $(requests) connections was lost, and none passed by the sidecar" no_request_lost
check "$pod: meanwhile a connection stayed open over 2000 requests" connection_kept
check "$pod: a client's request still passes the sidecar" answers "http://$four:8080/" "app on 8080: from 127.0.0.6, sidecar: inbound"

# ---- istio-init itself again, in the same sandbox: all containers of the pod end, and the runtime has forgotten istio-init
cri() { command cri "unix://$node/containerd.sock" "$@"; }
init_ran_again() {
  local now
  now=$(cri list injected istio-init | awk '$2 == "CONTAINER_EXITED" && $5 == 0 { print $1 }')
  [ -n "$now" ] && [ "$now" != "$1" ] || { cri list injected; return 1; }
}
# All at once: were one seen running yet, the kubelet would take the pod for initialized, and start the other alone.
end_containers() { # POD
  local ids
  ids=$(field "$1" '.status.containerStatuses[].containerID | split("/")[2]')
  ctr --namespace k8s.io tasks list | awk -v ids="$ids" 'BEGIN { split(ids, list); for (i in list) wanted[list[i]] } $1 in wanted { print $2 }' |
    xargs kill -KILL
}
runs_again() {
  local before address
  before=$(cri list injected istio-init | awk '{ print $1 }') address=$(address injected 0)
  cri remove "$before"
  for _ in 1 2 3; do
    end_containers injected
    ! eventually 40 init_ran_again "$before" || break
  done
  init_ran_again "$before" && becomes_ready injected && is "$(address injected 0)" "$address"
}
check "injected: istio-init that is run again in the same sandbox ends with 0" runs_again
check "injected: a client's request still passes the sidecar" answers "http://$(address injected 0):8080/" "app on 8080: from 127.0.0.6, sidecar: inbound"

# ---- from the node, and from an ephemeral container
debugged() { says ISTIO_INBOUND 15006 ISTIO_OUTPUT "lands on 127.0.0.1:15001" -- page docs/debugging.md "Debug a pod on a node" -e "s/POD/$pod/g"; }
check "docs/debugging.md, Debug a pod on a node: its commands tell the rules of the pod, and where the app's request goes" debugged
pid=$(process "$pod")
check "node: sidetrack explain --pid: TPROXY takes a client's request to $tproxy" says ISTIO_TPROXY 15006 -- \
  "$program" explain --pid "$(process "$tproxy")" in tcp :8080 --from 198.51.100.10
check "node: sidetrack explain --pid: a client's request" says 15006 -- "$program" explain --pid "$pid" in tcp :8080 --from 198.51.100.10 --brief
check "node: nsenter and sidetrack show" says ISTIO_INBOUND 15006 -- nsenter -t "$pid" -n "$program" show
debugged_with() { # PROFILE WORDS…: what an ephemeral container of that profile says
  local profile=$1
  shift
  kubectl debug "$pod" --profile="$profile" --image=localhost/sidetrack:0.2.0 --container="debugger-$profile" --target=app -- sidetrack show >/dev/null 2>&1
  eventually 60 says "$@" -- kubectl logs "$pod" -c "debugger-$profile"
}
check "ephemeral container: with the profile netadmin sidetrack show tells the rules" debugged_with netadmin ISTIO_INBOUND 15006
check "ephemeral container: with another one it says that it needs NET_ADMIN" debugged_with general NET_ADMIN

# ---- the sidecar as native sidecar container
check "$native: becomes ready" becomes_ready "$native"
intercepted "$native" 127.0.0.6 ::6 "$envoy"
check "$native: its proxy is an init container that goes on" is "$(field "$native" '[.spec.initContainers[] | [.name, .restartPolicy] | join(" ")] | join(", ")')" \
  "istio-init , istio-proxy Always"
rm "$node/process-$native"
kubectl delete --now --wait=false pod "$native" >/dev/null

names_the_image() { grep -Pzoq '( *)global:\n\1  proxy_init:\n\1    image: \S+/\S+' "container/$1"; }
check "istio-values.yaml names the image as global.proxy_init.image" names_the_image istio-values.yaml
check "istio-operator.yaml does too" names_the_image istio-operator.yaml

# ---- measured
ran_for() { # POD: ms from the start of `runc start`, which sets the program going, to its end
  local id state started finished code
  read -r id state started finished code <<<"$(cri list "$1" istio-init)"
  started=$(cat "$node/notes/$id.start")
  echo $(((finished - started) / 1000000))
}
echo
echo "istio-init                         kubelet: start to end   runc start to end   container's peak memory   what it says"
for name in "$pod" injected least-privilege "$tproxy" bad-port; do
  printf '%-34s %21s s %16s ms %21s KiB   %s\n' "$name" \
    "$(kubectl get pod "$name" -o json | jq -r --arg name istio-init "[$init_state][0] | (.finishedAt | fromdate) - (.startedAt | fromdate)")" \
    "$(ran_for "$name")" \
    "$(awk -F'\t' -v pod="$name" '$1 == pod && $2 == "istio-init" && $3 > peak { peak = $3 } END { print int(peak / 1024) }' "$node/notes/peaks")" \
    "$(kubectl logs "$name" -c istio-init | tail -1 | cut -f 3- | cut -c 1-80)"
done
echo "The kubelet counts whole seconds. Time and memory are those of the container with what the runtime needs to start it:"
echo "bad-port ends before it programs anything."
echo

kubectl delete pods --all --now --wait=false >/dev/null
injector=$(dirname "$program")/sidetrack-injector
if [ -n "$envoy" ] && [ -x "$injector" ]; then
  . tests/pod/injector.sh
else
  echo "NOT RUN: the pods that the webhook changes, which need sidetrack-injector beside the program, and Envoy"
fi
. tests/pod/cni.sh
[ "$failed" = 0 ] || printf 'FAILED  %s\n' "${failures[@]}" >"${SIDETRACK_NODE:-$node}/failures"
summary
