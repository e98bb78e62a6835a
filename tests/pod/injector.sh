# Sourced by kubernetes.sh: pods that the admission webhook changes, as container/README.md says it is installed.
install_webhook() { container/injector-certificate >"$webhook/manifests.yaml" && command kubectl apply -f "$webhook/manifests.yaml"; }
injector() { command kubectl --namespace sidetrack "$@"; }
ready_injectors() { is "$(injector get deployment sidetrack-injector -o 'jsonpath={.status.readyReplicas}')" "$1"; }
injectors_ended() { is "$(injector get pods -o name)" ''; }
plain() { # NAME [jq options] FILTER: a pod with the app alone
  local name=$1
  shift
  manifest pod-cni.yaml --arg name "$name" '.metadata.name = $name | del(.metadata.namespace, .metadata.annotations["sidecar.istio.io/status"]) |
    .metadata.annotations["proxy.istio.io/config"] = "proxyMetadata: {ISTIO_DUAL_STACK: \"true\"}" |
    .spec.containers |= map(select(.name == "app")) | .spec.volumes |= map(select(.name != "sidecar"))' | jq "$@"
}
refused() { # WORDS… -- : what kubectl says of the pod on standard input, which is not made
  local pod words=() said
  while [ "$1" != -- ]; do words+=("$1"); shift; done
  pod=$(cat)
  ! said=$(kubectl create -f - <<<"$pod" 2>&1) && one_line "$said" "${words[@]}" || { echo "$said"; return 1; }
}
injected_containers() { field "$1" '[.spec.initContainers[0].name, .spec.containers[-1].name] | join(" ")'; }
none_without_sidecar() { # of the pods of this namespace
  is "$(kubectl get pods -o json | jq -c '[.items[] | select(.metadata.annotations["sidecar.istio.io/status"] == null) | .metadata.name]')" '[]'
}

webhook=$node/webhook
mkdir "$webhook"
check "scripts/image injector: makes the image" scripts/image injector --program "$injector" --output "$webhook/image"
ctr --namespace k8s.io images import "$webhook/image/sidetrack-injector.oci.tar" >/dev/null
check "injector-certificate: what it prints is accepted" install_webhook
check "injector.yaml: is accepted" command kubectl apply -f container/injector.yaml
check "injector.yaml: both replicas become ready" eventually 120 ready_injectors 2
make_namespace shop sidetrack-injection=enabled
namespace=shop kubectl apply -f container/config.yaml >/dev/null
kubectl apply -f container/config.yaml >/dev/null

plain again . >"$webhook/plain.json"
answers_requests() { namespace=shop kubectl create --dry-run=server -f "$webhook/plain.json"; }
check "the webhook: answers, once kube-proxy knows where it is" eventually 30 answers_requests
plain web . | namespace=shop start
plain web-unlabelled 'del(.spec.containers[].startupProbe, .spec.containers[].livenessProbe)' | start
namespace=shop check "a plain pod of a labelled namespace: gets istio-init first and the proxy last" is "$(namespace=shop injected_containers web)" "istio-init istio-proxy"
check "one of another namespace: is left as it is" is "$(field web-unlabelled '.spec.initContainers | length')" 0
namespace=shop check "the labelled one: becomes ready" becomes_ready web
namespace=shop intercepted web 127.0.0.6 ::6 "$envoy"
plain wrong '.metadata.annotations["traffic.sidecar.istio.io/includeInboundPorts"] = "http"' >"$webhook/wrong.json"
namespace=shop check "a wrong annotation: kubectl says its name, its value and what was expected" refused injector.sidetrack.io "Pod shop/wrong" \
  "traffic.sidecar.istio.io/includeInboundPorts: 'http': expected a port" -- <"$webhook/wrong.json"

# ---- certificates change under load: kube-apiserver must trust what the injector presents at each moment
dry_runs() {
  local i
  for i in $(seq 60); do namespace=shop kubectl create --dry-run=server -f "$webhook/plain.json" || return 1; done
}
{ dry_runs >"$webhook/load" 2>&1 && echo all >"$webhook/succeeded" || echo "not all: $(tail -n 1 "$webhook/load")" >"$webhook/succeeded"; } &
loaded() { [ -s "$webhook/succeeded" ] || { echo "60 requests have not ended yet"; return 1; }; }
renewed() { install_webhook && eventually 150 loaded && is "$(cat "$webhook/succeeded")" all; }
check "certificates that change: no request fails" renewed
# By the authority of the new certificate alone: the webhook's configuration trusts the one before, too.
presents() {
  injector get secret sidetrack-injector -o 'jsonpath={.data.tls\.crt}' | base64 -d | openssl x509 -noout -serial >"$webhook/serial"
  is "$(openssl s_client -connect "$(injector get service sidetrack-injector -o 'jsonpath={.spec.clusterIP}'):443" </dev/null 2>/dev/null |
    openssl x509 -noout -serial)" "$(cat "$webhook/serial")"
}
check "certificates that change: the injector presents the new one" eventually 120 presents

# ---- the webhook away
injector scale deployment sidetrack-injector --replicas=0 >/dev/null
check "sidetrack-injector: ends when it is told to" eventually 40 injectors_ended
namespace=shop check "the webhook away: no pod slips through" refused "failed calling webhook" injector.sidetrack.io -- <"$webhook/plain.json"
namespace=shop check "the webhook away: all pods of the namespace have a sidecar" none_without_sidecar
injector scale deployment sidetrack-injector --replicas=2 >/dev/null
check "sidetrack-injector: is back" eventually 60 ready_injectors 2
check "the webhook back: pods are made again" eventually 30 answers_requests
command kubectl delete mutatingwebhookconfiguration sidetrack-injector >/dev/null
injector scale deployment sidetrack-injector --replicas=0 >/dev/null
namespace=shop kubectl delete pods --all --now --wait=false >/dev/null
