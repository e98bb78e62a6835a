# Sourced by what runs pods: one line for each thing that is checked, and what a client and a server outside the pods see.
passed=0 failed=0

skip() {
  echo "skipped: $*"
  [ "${SIDETRACK_REQUIRE_KERNEL:-}" != 1 ] || exit 1
  exit 77
}
needs_tools() {
  local tool
  for tool; do [ -n "$(type -P "$tool")" ] || skip "$tool is missing; install it by 'scripts/setup test'"; done
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
    echo "FAILED  $what"
    sed 's/^/        /' <<<"$said"
  fi
}
summary() {
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
  [ "$(grep -c . <<<"$commands")" -le 3 ] || { echo "more than three commands: $commands"; return 1; }
  bash -xeuc "sudo() { \"\$@\"; }
$commands"
}

# serve_target NGINX-ROOT: a server in "world", on a port that is intercepted and on one that the manifests exclude.
serve_target() {
  local root=$1 libraries folder
  libraries=$(find "$root" -name '*.so*' -printf '%h\n' | sort -u | paste -sd:)
  folder=$(mktemp -d)
  cat >"$folder/nginx.conf" <<'N'
daemon off;
user root;
pid nginx.pid;
events {}
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
}
N
  ip netns exec world "$root"/lib64/ld-linux-*.so.* --library-path "$libraries" "$root/usr/sbin/nginx" -e stderr -p "$folder" \
    -c "$folder/nginx.conf" &
  eventually 30 request http://198.51.100.10/
}
request() { ip netns exec world curl --globoff --silent --show-error --max-time 10 "$@"; }
answers() { # URL BODY
  is "$(request "$1" 2>&1)" "$2"
}
answers_without_sidecar() { # URL BODY: not even in passing, which a header of the answer would tell
  is "$(request -i "$1" 2>&1 | tr -d '\r' | sed -n '/^x-sidecar/p; $p')" "$2"
}

# interception POD IPv4 IPv6: what the manifests promise of a running pod.
interception() {
  local pod=$1 four=$2 six=$3
  check "$pod: a client's request passes the sidecar, IPv4" answers "http://$four:8080/" "app on 8080: from 127.0.0.6, sidecar: inbound"
  check "$pod: a client's request passes the sidecar, IPv6" answers "http://[$six]:8080/" "app on 8080: from ::6, sidecar: inbound"
  check "$pod: the excluded port 9080 reaches the app, IPv4" answers_without_sidecar "http://$four:9080/" \
    "app on 9080: from 198.51.100.10, sidecar: "
  check "$pod: the excluded port 9080 reaches the app, IPv6" answers_without_sidecar "http://[$six]:9080/" \
    "app on 9080: from 2001:db8:51::10, sidecar: "
  check "$pod: the app's own request passes the sidecar, IPv4" answers "http://$four:9080/fetch/198.51.100.10:80/" \
    "target on 198.51.100.10:80: from $four, sidecar: outbound"
  check "$pod: the app's own request passes the sidecar, IPv6" answers "http://$four:9080/fetch/[2001:db8:51::10]:80/" \
    "target on 2001:db8:51::10:80: from $six, sidecar: outbound"
  check "$pod: the app's request to the excluded port 9999 does not, IPv4" answers "http://$four:9080/fetch/198.51.100.10:9999/" \
    "target on 198.51.100.10:9999: from $four, sidecar: "
  check "$pod: the app's request to the excluded port 9999 does not, IPv6" answers "http://$four:9080/fetch/[2001:db8:51::10]:9999/" \
    "target on 2001:db8:51::10:9999: from $six, sidecar: "
  check "$pod: the app's request to the excluded range does not, IPv4" answers "http://$four:9080/fetch/203.0.113.10:80/" \
    "target on 203.0.113.10:80: from $four, sidecar: "
  check "$pod: the app's request to the excluded range does not, IPv6" answers "http://$four:9080/fetch/[2001:db8:cb::10]:80/" \
    "target on 2001:db8:cb::10:80: from $six, sidecar: "
}
