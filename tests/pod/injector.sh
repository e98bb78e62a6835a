# Sourced by kubernetes.sh: pods that the admission webhook changes, asked by kube-apiserver. There is no controller and no
# kube-proxy on this node: the injector is a process of the node, and the webhook has a URL in place of its Service.
webhook_url=https://sidetrack-injector.sidetrack.svc:9443/inject
objects() { # FILE [jq options] FILTER: of YAML whatever this version of kubectl knows of it
  local file=$1
  shift
  python3 -c 'import json, sys, yaml; [print(json.dumps(each)) for each in yaml.safe_load_all(sys.stdin) if each]' <"$file" | jq "$@"
}
write_certificate() { # of the manifests that container/injector-certificate has made
  local key
  for key in crt key; do
    objects "$webhook/manifests.yaml" -r --arg key "tls.$key" 'select(.kind == "Secret").data[$key] | @base64d' >"$webhook/tls.$key.new"
    mv "$webhook/tls.$key.new" "$webhook/tls.$key"
  done
}
install_webhook() {
  container/injector-certificate >"$webhook/manifests.new" && mv "$webhook/manifests.new" "$webhook/manifests.yaml" &&
    objects "$webhook/manifests.yaml" --arg url "$webhook_url" 'if .kind == "MutatingWebhookConfiguration"
      then .webhooks[0].clientConfig |= (del(.service) | .url = $url) else . end' | command kubectl apply -f -
}
injector_answers() { curl -fsS --cacert <(objects "$webhook/manifests.yaml" -r 'select(.kind == "MutatingWebhookConfiguration") |
  .webhooks[0].clientConfig.caBundle | @base64d') "${webhook_url%/*}/ready"; }
injector_ended() { ! kill -0 "$injector_process" 2>/dev/null; }
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
echo '127.0.0.1 sidetrack-injector.sidetrack.svc' >>/etc/hosts
objects container/injector.yaml -r 'select(.kind == "ConfigMap").data["template.yaml"]' >"$webhook/template.yaml"
check "injector-certificate: what it prints is accepted" install_webhook
write_certificate
start_injector() {
  "$injector" --cert "$webhook/tls.crt" --key "$webhook/tls.key" --template "$webhook/template.yaml" --listen 127.0.0.1:9443 >"$webhook/log" 2>&1 &
  injector_process=$!
}
start_injector
check "sidetrack-injector: answers" eventually 30 injector_answers
command kubectl create namespace shop >/dev/null
command kubectl label namespace shop sidetrack-injection=enabled >/dev/null
namespace=shop kubectl apply -f container/config.yaml >/dev/null
kubectl apply -f container/config.yaml >/dev/null

plain web . | namespace=shop start
plain web-unlabelled 'del(.spec.containers[].startupProbe, .spec.containers[].livenessProbe)' | start
namespace=shop check "a plain pod of a labelled namespace: gets istio-init first and the proxy last" is "$(namespace=shop injected_containers web)" "istio-init istio-proxy"
check "one of another namespace: is left as it is" is "$(field web-unlabelled '.spec.initContainers | length')" 0
namespace=shop check "the labelled one: becomes ready" becomes_ready web
namespace=shop intercepted web 127.0.0.6 ::6 "$envoy"
plain wrong '.metadata.annotations["traffic.sidecar.istio.io/includeInboundPorts"] = "http"' >"$webhook/wrong.json"
namespace=shop check "a wrong annotation: kubectl says its name, its value and what was expected" refused injector.sidetrack.io "Pod shop/wrong" \
  "traffic.sidecar.istio.io/includeInboundPorts: 'http': expected a port" -- <"$webhook/wrong.json"

# ---- certificates change under load: each request of kube-apiserver must find the one or the other
dry_runs() {
  local i
  for i in $(seq 60); do namespace=shop kubectl create --dry-run=server -f "$webhook/plain.json" || return 1; done
}
plain again . >"$webhook/plain.json"
{ dry_runs >"$webhook/load" 2>&1 && echo all >"$webhook/succeeded" || echo "not all: $(tail -n 1 "$webhook/load")" >"$webhook/succeeded"; } &
renewed() { install_webhook && write_certificate && eventually 60 test -s "$webhook/succeeded" && is "$(cat "$webhook/succeeded")" all; }
check "certificates that change: no request fails" renewed

# ---- the webhook away
kill "$injector_process"
check "sidetrack-injector: SIGTERM ends it" eventually 30 injector_ended
namespace=shop check "the webhook away: no pod slips through" refused "failed calling webhook" injector.sidetrack.io -- <"$webhook/plain.json"
namespace=shop check "the webhook away: all pods of the namespace have a sidecar" none_without_sidecar
start_injector
check "sidetrack-injector: is back" eventually 30 injector_answers
namespace=shop check "the webhook back: pods are made again" eventually 30 eval 'kubectl create --dry-run=server -f "$webhook/plain.json"'
kill "$injector_process"
command kubectl delete mutatingwebhookconfiguration sidetrack-injector >/dev/null
namespace=shop kubectl delete pods --all --now --wait=false >/dev/null
