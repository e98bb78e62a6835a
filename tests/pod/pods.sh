# Sourced by what runs on the Kubernetes node: pods, and what the cluster says of them.
node=/run/node
namespace=default
kubectl() { command kubectl --namespace "$namespace" "$@"; }

manifest() { # FILE [jq options] FILTER: the pod of a file of the folder $manifests, changed
  local file=$1
  shift
  kubectl create --dry-run=client --validate=false -o json -f "$manifests/$file" | jq "$@"
}
with_haproxy() { manifests=$node/haproxy manifest "$@"; }
start() { kubectl create -f - >/dev/null; } # pods on standard input
make_namespace() { # NAME [LABEL=VALUE]: with its account, without which it takes no pods
  command kubectl create namespace "$1" >/dev/null
  [ -z "${2:-}" ] || command kubectl label namespace "$1" "$2" >/dev/null
  eventually 30 command kubectl --namespace "$1" get serviceaccount default >/dev/null
}
field() { kubectl get pod "$1" -o json | jq -r "$2"; }
address() { field "$1" ".status.podIPs[$2].ip"; }
ready() { is "$(field "$1" '.status.conditions[] | select(.type == "Ready") | .status')" True; }
becomes_ready() { eventually 120 ready "$1" || { kubectl describe pod "$1"; kubectl logs "$1" -c istio-init; return 1; }; }
process() { # POD: one of its app
  local container
  container=$(field "$1" '.status.containerStatuses[] | select(.name == "app") | .containerID | split("/")[2]')
  # grep fails when any process ends meanwhile.
  { grep -ls "$container" /proc/[0-9]*/cgroup || true; } | sed -n '1s,^/proc/\([0-9]*\)/.*,\1,p'
}
in_pod() { nsenter --target "$(cat "$node/process-$1")" --net "${@:2}"; } # in `intercepted`, which asks only once for the process
intercepted() { # POD SOURCE4 SOURCE6 [with-envoy]
  local four six
  process "$1" >"$node/process-$1"
  four=$(address "$1" 0) six=$(address "$1" 1)
  interception "$1" "$four" "$six" "$2" "$3"
  [ -z "${4:-}" ] || through_envoy "$1" "$four" "$six" "$2" "$3"
}
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
# With `eventually`: a container that is run again has no log for a moment.
logs_say() { one_line "$(kubectl logs "$1" -c "$2")" "${@:3}"; }
description_says() { one_line "$(kubectl describe pod "$1" | sort -u)" "${@:2}"; } # of this end and the one before
events_say() {
  kubectl get events --field-selector "involvedObject.name=$1" -o json | jq -r '.items[].message' |
    { grep -F -- "$2" || { kubectl get events --field-selector "involvedObject.name=$1"; return 1; }; }
}
says() { # WORDS… -- COMMAND…
  local words=() said word
  while [ "$1" != -- ]; do words+=("$1"); shift; done
  shift
  said=$("$@") || { echo "$said"; return 1; }
  for word in "${words[@]}"; do grep -qF -- "$word" <<<"$said" || { echo "no '$word' in:"; echo "$said"; return 1; }; done
}
