# Sourced by what runs pods: one line for each thing that is checked, and what a client and a server outside the pods see.
passed=0 failed=0 failures=()

skip() {
  echo "skipped: $*"
  [ "${SIDETRACK_REQUIRE_KERNEL:-}" != 1 ] || exit 1
  exit 77
}
needs_tools() { # TOOLS…, which `scripts/setup $task` installs
  local tool
  for tool; do [ -n "$(type -P "$tool")" ] || skip "$tool is missing; install it by 'scripts/setup ${task:-test}'"; done
}
needs() { # TOOLS…, and what all tests of pods need
  [ "$(id -u)" = 0 ] || skip "it needs root"
  needs_tools "$@"
  unshare --mount --net --ipc --uts --pid --fork true 2>/dev/null || skip "namespaces cannot be made here"
}

# in_namespaces COMMAND…: as process 1 of mount, process and network namespaces of its own. Call end_namespaces when leaving:
# however the caller ends, nothing goes on in there.
in_namespaces() {
  setpriv --pdeathsig KILL unshare --mount --net --ipc --uts --pid --fork --kill-child --mount-proc "$@" &
  namespaces=$!
  wait "$namespaces"
}
end_namespaces() {
  [ -n "${namespaces:-}" ] && kill -KILL "$namespaces" 2>/dev/null || return 0
  wait "$namespaces" 2>/dev/null || true
}

# check WHAT COMMAND…: passes if the command succeeds; shows what it printed if not.
check() {
  local what=$1 said
  shift
  if said=$("$@" 2>&1); then
    passed=$((passed + 1))
    echo "ok      $what"
  else
    failed=$((failed + 1))
    failures+=("$what")
    echo "FAILED  $what"
    sed 's/^/        /' <<<"$said"
  fi
}
# Names what failed once more: of a long output often the end alone is kept.
summary() {
  [ "$failed" = 0 ] || printf 'FAILED  %s\n' "${failures[@]}"
  echo "$passed passed, $failed failed"
  [ "$failed" = 0 ]
}

# eventually SECONDS COMMAND…: until the command succeeds; its last words if it never does.
eventually() {
  local end=$((SECONDS + $1)) said
  shift
  until said=$("$@" 2>&1); do
    [ "$SECONDS" -lt "$end" ] || { echo "$said"; return 1; }
    sleep 0.2
  done
}
is() { [ "$1" = "$2" ] || { echo "got '$1', expected '$2'"; return 1; }; }

# page FILE SECTION [sed options]: runs the commands of a section of a page, one to three; sed fills in what is in capitals.
page() {
  local commands
  commands=$(awk -v section="$2" '/^#/ { on = $0 ~ "^#+ " section "$" } on && /^    / { print substr($0, 5) }' "$1" | sed "${@:3}" -e '')
  [ -n "$commands" ] || { echo "$1 has no commands in '$2'"; return 1; }
  [ "$(grep -c '[^|\\]$' <<<"$commands")" -le 3 ] || { echo "more than three commands: $commands"; return 1; }
  bash -xeuc "sudo() { \"\$@\"; }
$commands"
}

# haproxy_manifests FOLDER: those of container/, with HAProxy in Envoy's place, and the pods' names end with -haproxy.
haproxy_manifests() {
  local manifest
  mkdir -p "$1"
  { cat tests/pod/haproxy.yaml; echo ---; cat container/config.yaml; } >"$1/config.yaml"
  for manifest in container/pod*.yaml; do
    sed -E 's|^  name: sidetrack.*|&-haproxy|
      s|image: envoyproxy/.*|image: haproxy:2.6|
      s|command: \[envoy.*|command: [haproxy, -f, /etc/sidecar/haproxy.cfg]|
      s|^( +name:) sidecar$|\1 haproxy|
      s|\[.*key: inbound([^ ]*)\.yaml.*|[{key: haproxy\1.cfg, path: haproxy.cfg}]|' "$manifest" >"$1/${manifest##*/}"
  done
}

# serve CONFIGURATION COMMAND…: nginx outside of containers, in the foreground, as the COMMAND runs it: ip netns exec NAME, for one.
serve() {
  local nginx=/run/nginx libraries folder
  libraries=$(find "$nginx" -name '*.so*' -printf '%h\n' | sort -u | paste -sd:)
  folder=$(mktemp -d)
  chmod 1777 "$folder" # for any user
  cat >"$folder/nginx.conf" <<N
load_module $nginx/usr/lib/nginx/modules/ngx_stream_module.so;
daemon off;
master_process off;
pid nginx.pid;
events {}
$1
N
  "${@:2}" "$nginx"/lib64/ld-linux-*.so.* --library-path "$libraries" "$nginx/usr/sbin/nginx" -e stderr -p "$folder" -c "$folder/nginx.conf"
}
tcp_service() { # NAME: plain TCP, which says what it sees of a connection
  echo "stream { server { listen 7070; listen [::]:7070; return \"$1 on \$server_addr:\$server_port: from \$remote_addr\n\"; } }"
}

# serve_target NGINX-ROOT: servers in "world": HTTP on a port that is intercepted and on one that the manifests exclude, and plain TCP.
serve_target() {
  mkdir /run/nginx
  mount --bind "$1" /run/nginx # where other users can read it, too
  serve "$(tcp_service target)"'
    http {
      access_log off;
      client_body_temp_path body;
      proxy_temp_path proxy;
      fastcgi_temp_path fastcgi;
      uwsgi_temp_path uwsgi;
      scgi_temp_path scgi;
      server {
        listen 80;
        listen [::]:80;
        listen 9999;
        listen [::]:9999;
        default_type text/plain;
        return 200 "target on $server_addr:$server_port: from $remote_addr, sidecar: $http_x_sidecar\n";
      }
    }' ip netns exec world &
  eventually 30 request http://198.51.100.10/
}
request() { ip netns exec world curl --globoff --silent --show-error --max-time 10 "$@"; }
answers() { # URL BODY
  is "$(request "$1" 2>&1)" "$2"
}
answers_without_sidecar() { # URL BODY: not even in passing, which a header of the answer would tell
  is "$(request -i "$1" 2>&1 | tr -d '\r' | sed -n '/^x-sidecar/p; $p')" "$2"
}

when=''
# interception POD IPv4 IPv6 SOURCE4 SOURCE6: what the manifests promise of a running pod. The app sees a client's request that passed
# the sidecar as coming from SOURCE. $when says at which point of a test.
interception() {
  local pod=$1 four=$2 six=$3
  check "$when$pod: a client's request passes the sidecar, IPv4" answers "http://$four:8080/" "app on 8080: from $4, sidecar: inbound"
  check "$when$pod: a client's request passes the sidecar, IPv6" answers "http://[$six]:8080/" "app on 8080: from $5, sidecar: inbound"
  check "$when$pod: the excluded port 9080 reaches the app, IPv4" answers_without_sidecar "http://$four:9080/" \
    "app on 9080: from 198.51.100.10, sidecar: "
  check "$when$pod: the excluded port 9080 reaches the app, IPv6" answers_without_sidecar "http://[$six]:9080/" \
    "app on 9080: from 2001:db8:51::10, sidecar: "
  check "$when$pod: the app's own request passes the sidecar, IPv4" answers "http://$four:9080/fetch/198.51.100.10:80/" \
    "target on 198.51.100.10:80: from $four, sidecar: outbound"
  check "$when$pod: the app's own request passes the sidecar, IPv6" answers "http://$four:9080/fetch/[2001:db8:51::10]:80/" \
    "target on 2001:db8:51::10:80: from $six, sidecar: outbound"
  check "$when$pod: the app's request to the excluded port 9999 does not, IPv4" answers "http://$four:9080/fetch/198.51.100.10:9999/" \
    "target on 198.51.100.10:9999: from $four, sidecar: "
  check "$when$pod: the app's request to the excluded port 9999 does not, IPv6" answers "http://$four:9080/fetch/[2001:db8:51::10]:9999/" \
    "target on 2001:db8:51::10:9999: from $six, sidecar: "
  check "$when$pod: the app's request to the excluded range does not, IPv4" answers "http://$four:9080/fetch/203.0.113.10:80/" \
    "target on 203.0.113.10:80: from $four, sidecar: "
  check "$when$pod: the app's request to the excluded range does not, IPv6" answers "http://$four:9080/fetch/[2001:db8:cb::10]:80/" \
    "target on 2001:db8:cb::10:80: from $six, sidecar: "
}

# in_pod POD COMMAND…, which the caller defines: runs the command in the pod's network namespace.
as_app() { in_pod "$1" setpriv --reuid 1000 --regid 1000 --clear-groups "${@:2}"; }

# took POD: each listener of its Envoy that rules lead to, and how many connections it took.
took() {
  in_pod "$1" curl --silent --show-error --max-time 10 --get http://127.0.0.1:15000/stats \
    --data-urlencode 'filter=^listener\.0\.0\.0\.0_(15001|80|15006)\.downstream_cx_total$' |
    sed 's/^listener\.//; s/\.downstream_cx_total:/ /'
}
# taken_by LISTENER POD COMMAND…: the command makes 20 connections, which that listener takes, and no other. The kubelet's probes make
# one a second, which does not come near that.
taken_by() {
  local before after
  before=$(took "$2")
  "${@:3}" || return
  after=$(took "$2")
  is "$(awk 'NR == FNR { before[$1] = $2 } NR > FNR && $2 - before[$1] >= 20 { print $1 }' <(echo "$before") <(echo "$after"))" "$1"
}
# What comes back on 20 connections, each time the same.
twenty_requests() { # URL BODY
  is "$(request "$1?[1-20]" --no-globoff --header "Connection: close" 2>&1 | sort | uniq -c | xargs)" "20 $2"
}
twenty_connections() { # ADDRESS LINE COMMAND…
  is "$("${@:3}" timeout 20 bash -c 'for _ in {1..20}; do cat <"/dev/tcp/$0/7070"; done' "$1" 2>&1 | sort | uniq -c | xargs)" "20 $2"
}
world() { ip netns exec world "$@"; }

# through_envoy POD IPv4 IPv6 SOURCE4 SOURCE6: which of Envoy's listeners took the connections, HTTP and plain TCP. Arguments as above.
through_envoy() {
  local pod=$1 four=$2 six=$3
  local target=198.51.100.10 target6=2001:db8:51::10 in=0.0.0.0_15006 out=0.0.0.0_15001 out_http=0.0.0.0_80
  serve "$(tcp_service app)" as_app "$pod" &
  eventually 30 in_pod "$pod" bash -c 'exec 3<>/dev/tcp/127.0.0.1/7070'

  check "$pod: Envoy's listener $in takes a client's requests, IPv4" \
    taken_by "$in" "$pod" twenty_requests "http://$four:8080/" "app on 8080: from $4, sidecar: inbound"
  check "$pod: Envoy's listener $in takes a client's requests, IPv6" \
    taken_by "$in" "$pod" twenty_requests "http://[$six]:8080/" "app on 8080: from $5, sidecar: inbound"
  check "$pod: Envoy's listener $in takes a client's plain TCP, IPv4" \
    taken_by "$in" "$pod" twenty_connections "$four" "app on $four:7070: from $4" world
  check "$pod: Envoy's listener $in takes a client's plain TCP, IPv6" \
    taken_by "$in" "$pod" twenty_connections "$six" "app on $six:7070: from $5" world
  check "$pod: Envoy's listener $out passes the app's requests on to $out_http, IPv4" \
    taken_by "$out_http" "$pod" twenty_requests "http://$four:9080/fetch/$target:80/" "target on $target:80: from $four, sidecar: outbound"
  check "$pod: Envoy's listener $out passes the app's requests on to $out_http, IPv6" \
    taken_by "$out_http" "$pod" twenty_requests "http://$four:9080/fetch/[$target6]:80/" "target on $target6:80: from $six, sidecar: outbound"
  check "$pod: Envoy's listener $out takes the app's plain TCP, IPv4" \
    taken_by "$out" "$pod" twenty_connections "$target" "target on $target:7070: from $four" as_app "$pod"
  check "$pod: Envoy's listener $out takes the app's plain TCP, IPv6" \
    taken_by "$out" "$pod" twenty_connections "$target6" "target on $target6:7070: from $six" as_app "$pod"
  check "$pod: none of Envoy's listeners takes requests to the excluded port 9080" \
    taken_by "" "$pod" twenty_requests "http://$four:9080/" "app on 9080: from 198.51.100.10, sidecar:"
  check "$pod: none of Envoy's listeners takes the app's requests to the excluded port 9999" \
    taken_by "" "$pod" twenty_requests "http://$four:9080/fetch/$target:9999/" "target on $target:9999: from $four, sidecar:"
  check "$pod: none of Envoy's listeners takes the app's requests to itself" \
    taken_by "" "$pod" twenty_connections "$four" "app on $four:7070: from $four" as_app "$pod"
}
