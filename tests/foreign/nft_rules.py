# SPDX-License-Identifier: GPL-2.0-or-later
"""Rulesets from nft's grammar: tables of several families, sets, maps, verdict maps, named objects, chains at hooks with
priorities, and rules of random matches and statements."""


def ports(dice):
    return str(dice.choice([53, 80, 1, 443, 1000, 65535, 8080]))


def address(dice, family):
    return dice.choice(["10.1.0.2", "10.1.0.1", "10.0.0.0/8", "10.1.0.0/30", "127.0.0.1"] if family == "ip" else
                       ["fd00::2", "fd00::1", "fd00::/8", "fd00::/126", "::1"])


def operator(dice):
    return dice.choice(["", "", "", "!= "])


def some(dice, make, count=3):
    return "{ " + ", ".join(sorted({make() for _ in range(dice.randint(1, count))})) + " }"


def port_range(dice):
    low, high = sorted(dice.sample([1, 53, 80, 443, 1000, 8080, 65535], 2))
    return f"{low}-{high}"


class Ruleset:
    FAMILIES = ["inet", "ip", "ip6"]

    def __init__(self, dice):
        self.dice = dice

    def declarations(self):
        text = ""
        for family in self.FAMILIES:
            text += f"""table {family} t {{
  set ports {{ type inet_service; elements = {{ 53, 443 }} }}
  set many {{ type inet_service; flags interval; elements = {{ 1-79, 1000-2000 }} }}
  set growing {{ type inet_service; flags dynamic, timeout; timeout 1m; }}
  set v4 {{ type ipv4_addr; flags interval; elements = {{ 10.1.0.0/24, 192.168.0.1-192.168.0.9 }} }}
  set v6 {{ type ipv6_addr; flags interval; elements = {{ fd00::/64 }} }}
  set pairs {{ type inet_proto . inet_service; elements = {{ tcp . 80, udp . 53 }} }}
  map marks {{ type inet_service : mark; elements = {{ 53 : 0x1, 80 : 0x2 }} }}
  map verdicts {{ type inet_service : verdict; elements = {{ 443 : jump other, 7 : return }} }}
  counter named {{ }}
  quota much {{ over 1000 mbytes }}
  limit slow {{ rate 1/second }}
  chain other {{
    counter
  }}
  chain output {{ type filter hook output priority 10; }}
  chain route {{ type route hook output priority mangle; }}
  chain input {{ type filter hook input priority filter; policy accept; }}
  chain forward {{ type filter hook forward priority filter; policy drop; }}
  chain dstnat {{ type nat hook output priority -100; }}
}}
"""
        return text + """table netdev t {
  chain ingress { type filter hook ingress device d0 priority 0; }
}
table arp t {
  chain input { type filter hook input priority 0; }
}
"""

    def match(self, family):
        dice = self.dice
        any_of = ["ip", "ip6"] if family == "inet" else [family]
        net = dice.choice(any_of)
        fixed = lambda: ports(dice)
        return dice.choice([
            lambda: f"{dice.choice(['tcp', 'udp', 'th'])} {dice.choice(['dport', 'sport'])} {operator(dice)}{ports(dice)}"
            if dice.random() < .7 else f"meta l4proto {{ tcp, udp }} th dport {operator(dice)}{ports(dice)}",
            lambda: f"{dice.choice(['tcp', 'udp'])} dport {operator(dice)}{some(dice, fixed)}",
            lambda: f"{dice.choice(['tcp', 'udp'])} {dice.choice(['dport', 'sport'])} {operator(dice)}{port_range(dice)}",
            lambda: f"tcp dport {dice.choice(['<', '>', '<=', '>='])} {ports(dice)}",
            lambda: f"{dice.choice(['tcp', 'udp'])} dport {operator(dice)}@{dice.choice(['ports', 'many', 'growing'])}",
            lambda: f"{net} {dice.choice(['daddr', 'saddr'])} {operator(dice)}{address(dice, net)}",
            lambda: f"{net} {dice.choice(['daddr', 'saddr'])} {operator(dice)}{some(dice, lambda: address(dice, net), 2)}",
            lambda: f"{net} daddr {operator(dice)}@{'v4' if net == 'ip' else 'v6'}",
            lambda: "ip daddr & 255.0.255.0 == 10.0.0.0" if net == "ip" else "ip6 daddr & ffff:: == fd00::",
            lambda: f"meta l4proto {operator(dice)}{dice.choice(['tcp', 'udp', '{ tcp, udp }', '{ tcp, 47 }', '1-10'])}",
            lambda: f"meta skuid {operator(dice)}{dice.choice(['0', '1337', '0-10', '{ 0, 5 }'])}",
            lambda: f"meta skgid {operator(dice)}{dice.choice(['0', '1337'])}",
            lambda: f"meta mark {operator(dice)}{dice.choice(['0x0', '0x1', '{ 0x1, 0x2 }', '1-5'])}",
            lambda: f"meta mark & {dice.choice(['0xff', '0x1'])} {dice.choice(['==', '!='])} {dice.choice(['0x0', '0x1'])}",
            lambda: f"oifname {operator(dice)}{dice.choice(['d0', 'lo', 'd*', '{ d0, lo }'])}",
            lambda: f"oif {operator(dice)}{dice.choice(['d0', 'lo'])}",
            lambda: f"ct state {operator(dice)}{dice.choice(['new', 'established', 'new,established', '{ new, related }'])}",
            lambda: f"ct mark {operator(dice)}{dice.choice(['0x0', '0x1'])}",
            lambda: f"ct direction {dice.choice(['original', 'reply'])}",
            lambda: f"ct status {dice.choice(['snat', 'dnat'])}",
            lambda: f"meta length {operator(dice)}{dice.choice(['0-100', '29', '> 60'])}",
            lambda: f"meta l4proto . th dport {dice.choice(['{ tcp . 80, udp . 53 }', '{ tcp . 1 }', '@pairs'])}",
            lambda: f"meta nfproto {dice.choice(['ipv4', 'ipv6'])}" if family == "inet" else "meta l4proto 17",
            lambda: f"meta protocol {dice.choice(['ip', 'ip6', '{ ip, ip6 }'])}",
            lambda: f"tcp flags {dice.choice(['syn', '& (syn|ack) == syn', '! fin,rst', 'syn / syn,ack'])}",
            lambda: f"@th,{dice.choice(['16,16 0x50', '0,8 0x0', '16,8 & 0xf0 == 0x0'])}",
            lambda: f"@nh,{dice.choice(['72,8 0x6', '0,8 & 0xf0 == 0x40', '64,4 0x4'])}",
            lambda: "meta l4proto udp udp length > 8",
            lambda: dice.choice(["limit rate 10/second", "limit rate over 1000/second burst 5 packets", "limit name \"slow\""]),
            lambda: dice.choice(["quota over 1 mbytes", "quota name \"much\"", "ct count over 1000", "numgen inc mod 2 0"]),
            lambda: dice.choice(["fib daddr type local", "fib daddr oif d0", "rt nexthop 10.1.0.2", "socket mark 0x0"]),
            lambda: dice.choice(["ip ttl 64", "ip dscp cs1", "ip tos 0", "ip version 4", "ip hdrlength 5", "ip protocol tcp"]) if net == "ip"
            else dice.choice(["ip6 hoplimit 64", "ip6 nexthdr tcp", "ip6 dscp cs1", "exthdr frag exists"]),
            lambda: f"jhash {net} saddr mod 2 0",
            lambda: "meta cpu 0", lambda: "meta pkttype unicast", lambda: "meta iiftype loopback", lambda: "meta random < 5",
            lambda: "meta hour \"00:00\"-\"23:59\"", lambda: "meta priority 0:0", lambda: "meta cgroup 0",
        ])()

    def statement(self):
        dice = self.dice
        return dice.choice([
            "accept", "drop", "return", "continue", "jump other", "goto other", "reject", "reject with tcp reset",
            "queue num 1 bypass", "log prefix \"x\"", "log group 2", "meta mark set 0x5", "meta mark set mark or 0x1",
            "meta mark set ct mark", "ct mark set mark", "ct mark set 0x7", "notrack", "meta priority set 1:2", "counter name \"named\"",
            "tcp dport vmap @verdicts", "tcp dport vmap { 443 : drop, 80 : accept }", "meta mark set tcp dport map @marks",
            "meta mark set tcp dport map { 53 : 0x9, 80 : 0xa }", "tcp dport vmap { 1-79 : return, 80-90 : continue }",
            "meta nfproto vmap { ipv4 : return, ipv6 : jump other }", "update @growing { tcp dport }", "tcp option maxseg size set 1000",
            "ip ttl set 3", "ip dscp set cs2", "meta nftrace set 1", "last", "meta pkttype set host",
        ])

    def nat(self, family):
        return self.dice.choice([
            "redirect", "redirect to :15001", "redirect to :15001-15010 random", "dnat to 10.1.0.9", "dnat to 10.1.0.9:80",
            "dnat to 10.1.0.9-10.1.0.12 persistent", "dnat ip to 10.1.0.9", "dnat ip6 to fd00::9", "dnat to [fd00::9]:80",
            "dnat to tcp dport map { 80 : 10.1.0.3, 1 : 10.1.0.4 }", "dnat to numgen inc mod 2 map { 0 : 10.1.0.3, 1 : 10.1.0.4 }",
            "accept", "return",
        ])

    def matches(self, family):
        return " ".join(self.match(family) for _ in range(self.dice.choice([1, 1, 1, 2, 2, 3])))

    def counting(self, count):
        """Rules that count and decide nothing, each in a chain of its own."""
        dice = self.dice
        made = []
        for number in range(count):
            family = dice.choice(self.FAMILIES)
            priority = dice.choice(["filter", "-150", "raw", "security", "100", "7", "mangle + 3"])
            made.append(f"add chain {family} t c{number} {{ type filter hook output priority {priority}; }}\n"
                        f"add rule {family} t c{number} {self.matches(family)} counter")
        return made

    def rules(self, count):
        dice = self.dice
        made = []
        for _ in range(count):
            family = dice.choice(self.FAMILIES)
            matches = self.matches(family)
            comment = dice.choice(["", "", "", ' comment "a \\x1b[2J comment"', ' comment "-j DROP"'])
            if dice.random() < .2:
                made.append(f"add rule {family} t dstnat {matches} {self.nat(family)}{comment}")
            else:
                chain = dice.choice(["output", "route", "input", "forward", "other"])
                made.append(f"add rule {family} t {chain} {matches} {self.statement()}{comment}")
        made.append("add rule netdev t ingress ip saddr 10.9.9.9 drop")
        made.append("add rule netdev t ingress tcp dport 80 meta mark set 0x1")
        made.append("add rule arp t input arp operation request counter")
        return made
