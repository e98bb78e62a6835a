# SPDX-License-Identifier: GPL-2.0-or-later
"""count.py PROGRAM FOLDER of iptables' test files: see ./count."""
import collections
import os
import re
import shlex
import sys

from foreign import MATCHES, Rule, files_of, load, restore_text, rules_of_file
from namespace import ADDRESSES, Namespace

BYTES = re.compile(r"\[(rev )?\d+[:,]|\[flags |[0-9a-f]{2}/[0-9a-f]{2} ")  # where there are no words
COLUMNS = ["understood", "in words", "as bytes", "refused"]


def packets(chain, family):
    """One of each protocol, as explain takes it, that comes to the chain."""
    own, other = ADDRESSES[family][0].split("/")[0], ADDRESSES[family][1]
    way, to, source = ("out", other, own) if chain in ("OUTPUT", "POSTROUTING") else ("in", own, other)
    host = f"[{to}]" if family == 6 else to
    sender = ["--uid", "0", "--gid", "0"] if way == "out" else []
    for protocol in "tcp", "udp":
        yield [way, protocol, f"{host}:80", "--from", source, "--from-port", "1000", *sender]
    yield [way, "icmp", to, "--from", source, *sender]


def classes(namespace, chain, family):
    """The class of each rule, by table, chain and number."""
    result = {}
    for shown in namespace.json("show", "--json").get("chains", []):
        for rule in shown["rules"]:
            key = shown["table"].split()[-1], shown["chain"], rule["number"]
            if BYTES.search(rule["rule"]):
                result[key] = "as bytes"
            result.setdefault(key, "in words")
    unknown, met = set(), set()
    for packet in packets(chain, family):
        for step in namespace.json("explain", "--json", *packet).get("steps", []):
            if "rule" in step:
                key = step["table"].split()[-1], step["chain"], step["number"]
                met.add(key)
                if step["kind"] == "unknown":
                    unknown.add(key)
    return {key: "understood" if key in met - unknown else words for key, words in result.items()}


def in_halves(namespace, family, rules, clear, try_to):
    """Counts those that go on all at once, others one by one: what follows them is not asked."""
    count = collections.Counter()
    together = [rule for rule in rules if not re.search(r"(^| )(-j|-g) ", rule.words)]
    for some in [together] + [[rule] for rule in rules if rule not in together]:
        for chain in {rule.chain for rule in some}:
            clear()
            of_chain = [rule for rule in some if rule.chain == chain]
            loaded = load(of_chain, try_to)
            count["refused"] += len(of_chain) - len(loaded)
            if loaded:
                count += collections.Counter(classes(namespace, chain, family).values())
    return count


def of_iptables(program, kind, family, rules):
    tool = f"{'iptables' if family == 4 else 'ip6tables'}-{kind}"
    with Namespace(program, f"count-{kind}") as namespace:
        clear = lambda: [namespace.call([tool, "-t", table, "-F"]) for table in {rule.table for rule in rules}]
        return in_halves(namespace, family, rules, clear, lambda some: namespace.call(
            [f"{tool}-restore", "--noflush"], restore_text(some)).returncode == 0)


def of_nft(program, family, rules):
    """The same rules as iptables-translate has them, those that it has."""
    ip, tool = ("ip", "iptables-translate") if family == 4 else ("ip6", "ip6tables-translate")
    with Namespace(program, "count-native") as namespace:
        translated = []
        for rule in rules:
            text = namespace.call([tool, "-t", rule.table, "-A", rule.chain, *shlex.split(rule.words)]).stdout.strip()
            found = re.match(rf"nft '?add rule {ip} {rule.table} {rule.chain} (.*?)'?$", text)
            if found and "#" not in text and "\n" not in text:
                translated.append(Rule(rule.table, rule.chain, re.sub(r"(^| )counter", "", found[1]).strip()))

        def try_to(some):
            text = ""
            for rule in some:
                of_type = rule.table if rule.table == "nat" else "filter"
                text += (f"add table {ip} {rule.table}\nadd chain {ip} {rule.table} {rule.chain} "
                         f"{{ type {of_type} hook {rule.chain.lower()} priority 0; }}\n"
                         f"add rule {ip} {rule.table} {rule.chain} {rule.words}\n")
            return namespace.call(["nft", "-f", "-"], text).returncode == 0

        count = collections.Counter()
        for rule in translated:
            namespace.run(["nft", "flush", "ruleset"])
            if not try_to([rule]):
                count["refused"] += 1
            else:
                count[classes(namespace, rule.chain, family)[rule.table, rule.chain, 1]] += 1
        return count


def main():
    program, folder = sys.argv[1:3]
    wanted = sys.argv[3:]
    counts = {}
    for family in 4, 6:
        for name in files_of(folder, family):
            extension = re.sub(r"^lib\w+?_|\.t$", "", os.path.basename(name))
            if wanted and extension not in wanted:
                continue
            rules = list(dict.fromkeys(rule for rule in rules_of_file(name) if rule.chain.isupper()))
            for kind in "legacy", "nft":
                counts.setdefault((extension, f"iptables-{kind}"), collections.Counter()).update(
                    of_iptables(program, kind, family, rules))
            counts.setdefault((extension, "nft"), collections.Counter()).update(of_nft(program, family, rules))
    print("extension".ljust(16), "rules of".ljust(16), *[name.rjust(10) for name in COLUMNS])
    totals = collections.defaultdict(collections.Counter)
    for (extension, kind), count in sorted(counts.items()):
        totals[kind].update(count)
        print(extension.ljust(16), kind.ljust(16), *[str(count[name]).rjust(10) for name in COLUMNS])
    for kind, count in totals.items():
        print("all".ljust(16), kind.ljust(16), *[str(count[name]).rjust(10) for name in COLUMNS])


main()
