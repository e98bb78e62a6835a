# Sourced by what runs pods: the network around them, in the caller's own network namespace.
#
#   world 198.51.100.10, 2001:db8:51::10 ── eth0 ── 198.51.100.1 node 10.244.0.1, fd00:244::1 ── pods0 ── pods
#
# "world" also has 203.0.113.10 and 2001:db8:cb::10, of the ranges that the manifests exclude.
make_network() {
  ip link set lo up
  ip netns add world
  ip link add eth0 type veth peer name eth0 netns world
  ip addr add 198.51.100.1/24 dev eth0
  ip addr add 2001:db8:51::1/64 dev eth0 nodad
  ip link set eth0 up
  ip route add default via 198.51.100.10
  ip route add default via 2001:db8:51::10
  ip -n world link set lo up
  ip -n world addr add 198.51.100.10/24 dev eth0
  ip -n world addr add 2001:db8:51::10/64 dev eth0 nodad
  ip -n world addr add 203.0.113.10/32 dev lo
  ip -n world addr add 2001:db8:cb::10/128 dev lo
  ip -n world link set eth0 up
  ip -n world route add 10.244.0.0/24 via 198.51.100.1
  ip -n world route add fd00:244::/64 via 2001:db8:51::1
  echo 1 >/proc/sys/net/ipv4/ip_forward
  echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
}

# pod_network FOLDER: the CNI configuration of the bridge, whose address files go into FOLDER.
pod_network() {
  cat <<K
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods0", "isGateway": true, "hairpinMode": true,
  "ipam": {"type": "host-local", "dataDir": "$1",
    "ranges": [[{"subnet": "10.244.0.0/24"}], [{"subnet": "fd00:244::/64"}]], "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}}]}
K
}
