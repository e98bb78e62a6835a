# SPDX-License-Identifier: GPL-2.0-or-later
"""foreign.py PROGRAM [FOLDER of iptables' test files]: see ./run."""
import collections
import glob
import json
import os
import random
import re
import sys
import tempfile

import nft_rules
from namespace import ADDRESSES, Namespace, fail

ALL = os.environ.get("SIDETRACK_FOREIGN") == "all"
SEED = int(os.environ.get("SIDETRACK_SEED", "7"))
PLAN = ["-u", "1337", "-i", "*", "-b", "*", "-x", "10.96.0.0/16", "--dns-server", "10.1.0.2", "--redirect-dns"]
Rule = collections.namedtuple("Rule", "table chain words")


def files_of(folder, family):
    prefixes = ["libxt_", "libipt_" if family == 4 else "libip6t_"]
    files = [name for prefix in prefixes for name in glob.glob(f"{folder}/{prefix}*.t")]
    return sorted(files + ([f"{folder}/iptables.t"] if family == 4 else []))


def rules_of_files(folder, family):
    """What the files say is accepted, each rule once for the first chain that it is for."""
    for name in files_of(folder, family):
        yield from rules_of_file(name)


def rules_of_file(name):
    table, chain = "filter", "OUTPUT"
    for line in open(name, encoding="utf-8"):
        line = line.rstrip("\n")
        if line.startswith(":"):
            chains = line[1:].split(",")
            chain = "OUTPUT" if "OUTPUT" in chains else chains[0]
        elif line.startswith("*"):
            table = line[1:].split(",")[0]
        elif line and line[0] not in "#@%":
            words, _, result = (line.split(";") + ["", ""])[:3]
            if result == "OK":
                yield Rule(table, chain, words)


def load(rules, try_to):
    """Those of the rules that the kernel takes: in halves, as one that is refused takes all others with it."""
    if not rules:
        return []
    if try_to(rules):
        return rules
    if len(rules) == 1:
        return []
    half = len(rules) // 2
    return load(rules[:half], try_to) + load(rules[half:], try_to)


def restore_text(rules):
    text = ""
    for table in sorted({rule.table for rule in rules}):
        lines = [f"-A {rule.chain} {rule.words}" for rule in rules if rule.table == table]
        text += f"*{table}\n" + "\n".join(lines) + "\nCOMMIT\n"
    return text


def saved(namespace):
    """All rules, without what changes by itself."""
    text = ""
    for kind in "legacy", "nft":
        for tool in "iptables", "ip6tables":
            text += namespace.run([f"{tool}-{kind}-save"])
    text = re.sub(r"^#.*\n", "", text, flags=re.M)
    text = re.sub(r"\[\d+:\d+\]", "", text)
    return text + namespace.run(["nft", "--stateless", "list", "ruleset"])


def is_within(lines, others):
    rest = iter(others)
    return all(line in rest for line in lines)


def left_alone(namespace, what, backends):
    """apply adds to what is there, clean takes that away again."""
    before = saved(namespace)
    for backend in backends:
        namespace.sidetrack("apply", "--backend", backend, *PLAN)
        with_ours = saved(namespace)
        if "ISTIO_" not in with_ours:
            fail(f"{what}: apply --backend {backend} has not programmed anything")
        if not is_within(before.splitlines(), with_ours.splitlines()):
            fail(f"{what}: apply --backend {backend} has changed rules of others")
        namespace.sidetrack("clean")
        after = without_empty_tables(saved(namespace))
        if after != without_empty_tables(before):
            for line in set(before.splitlines()) ^ set(after.splitlines()):
                print("   ", line)
            fail(f"{what}: after apply --backend {backend} and clean there is not what was there before")


def without_empty_tables(text):
    """A table of legacy iptables that was read stays; an empty one is none."""
    return re.sub(r"^\*\w+\n(:\w+ ACCEPT *\n)*COMMIT\n", "", text, flags=re.M)


def shown(namespace):
    """How many rules of each chain are shown."""
    count = collections.Counter()
    for chain in namespace.json("show", "--json").get("chains", []):
        numbers = {rule["number"] for rule in chain["rules"]}
        key = chain["backend"], ",".join(chain["families"]), chain["table"], chain["chain"]
        count[key] = max(count[key], len(numbers))
    return count


def mapped(namespace, what):
    """Every packet is in a region: the map can be made, whatever the rules are."""
    if not namespace.json("map", "--json"):
        fail(f"{what}: map says nothing")


NEVER = "a condition that never holds"  # what is shown of such a rule: it goes on, and there is nothing more to say


def counted(namespace, counters, packet):
    """The rules that count the packet."""
    before = counters()
    namespace.send([packet])
    after = counters()
    return {key: after[key] > before[key] for key in after}


def compare_with_packets(namespace, what, key_of_step, counters, packets, asked=()):
    """Whether each rule counts the packets that explain, asked with these options, says it matches. Returns how many
    answers were decided."""
    decided = unknown = 0
    counters()  # so that `key_of_step` knows the rules
    for packet in packets:
        family, protocol, to, port, source = packet
        at = f"[{to}]:{port}" if family == 6 else f"{to}:{port}"
        trace = namespace.json("explain", "out", protocol, at, "--uid", "0", "--gid", "0", "--from-port", str(source), "--json", *asked)
        kinds = collections.defaultdict(set)
        for step in trace.get("steps", []):
            if "rule" in step:
                never = step["rule"].endswith((NEVER, " is empty"))
                kinds[key_of_step(step)].add("passed" if never else step["kind"])
        matches = {key: bool(said & {"matched", "decided"}) for key, said in kinds.items() if "unknown" not in said}
        seen = counted(namespace, counters, packet)
        # One that is not named is of the other family, or behind the point where explain gives up.
        gives_up = "possible paths" in json.dumps(trace["outcome"])
        for key in seen.keys() - kinds.keys() if not gives_up else ():
            matches[key] = False
        wrong = {key for key, counts in seen.items() if matches.get(key, counts) != counts}
        # The kernel sends packets of its own, of neighbour discovery and of multicast groups, for some seconds after the
        # interface is up: what is wrong each time is wrong.
        for _ in range(10):
            if wrong:
                again = counted(namespace, counters, packet)
                wrong = {key for key in wrong if again[key] == seen[key]}
        for key in sorted(wrong):
            fail(f"{what}: {protocol} to {at}: rule {key} {'counts it' if seen[key] else 'does not count it'}, "
                 f"and explain says {sorted(kinds[key]) or 'nothing'}")
        decided += len(seen.keys() & matches.keys())
        unknown += len(seen.keys() - matches.keys())
    return decided, unknown


PACKETS = [[family, protocol, ADDRESSES[family][1], port, source]
           for family in (4, 6) for protocol, port, source in (("udp", 53, 1000), ("tcp", 80, 1), ("tcp", 1, 65535))]


# ---- iptables

MATCHES = re.compile(r" ?(-j|-g) .*")  # what comes before the target; some files have targets alone


def rules_of_iptables(program, folder, kind):
    found = loaded_rules = 0
    with Namespace(program, kind) as namespace:
        for family, tool in (4, "iptables"), (6, "ip6tables"):
            rules = list(dict.fromkeys(rules_of_files(folder, family)))
            if not ALL:
                rules = random.Random(SEED).sample(rules, 60)
            restore = [f"{tool}-{kind}-restore", "--noflush"]
            loaded = load(rules, lambda some: namespace.call(restore, restore_text(some)).returncode == 0)
            found += len(rules)
            loaded_rules += len(loaded)
        what = f"iptables-{kind}"
        check_numbers(namespace, kind)
        namespace.sidetrack("show")
        mapped(namespace, what)
        for family, (_, other) in ADDRESSES.items():
            namespace.sidetrack("explain", "out", "tcp", f"[{other}]:80" if family == 6 else f"{other}:80")
        left_alone(namespace, what, ["iptables-legacy" if kind == "legacy" else "iptables-nft", "nftables"])
    print(f"iptables-{kind}: {found} rules of iptables' files, {loaded_rules} taken by this kernel")
    if loaded_rules < 100:
        fail("hardly any rule could be loaded")


def check_numbers(namespace, kind):
    """No rule is left out of what is shown."""
    count = shown(namespace)
    for family, tool in ("ipv4", "iptables"), ("ipv6", "ip6tables"):
        table = ""
        listed = collections.Counter()
        for line in namespace.run([f"{tool}-{kind}-save"]).splitlines():
            if line.startswith("*"):
                table = line[1:]
            elif line.startswith("-A"):
                listed[table, line.split()[1]] += 1
        for (table, chain), rules in listed.items():
            said = count[f"iptables-{kind}", family, table, chain]
            if said != rules:
                fail(f"iptables-{kind}, {family} {table} {chain}: {rules} rules, and show has {said}")


OF_POD = ["--address", ",".join(f"{own}%d0" for own, _ in ADDRESSES.values())]


def options_of_listing(namespace, folder, *options):
    """The rules as nft lists them, and the pod."""
    name = f"{folder}/nft{''.join(options)}"
    with open(name, "w") as file:
        file.write(namespace.run(["nft", *options, "list", "ruleset"]))
    return [*OF_POD, "--rules", name]


def options_of_text(namespace, kind, folder):
    """The rules as a report has them, and the pod."""
    options = list(OF_POD)
    for tool in "iptables", "ip6tables":
        program = f"{tool}-{kind}-save"
        with open(f"{folder}/{tool}", "w") as file:
            # A rule without a target looks like one that was cut off.
            file.write(f"$ {program}\n" + re.sub(r"^(-A(?!.* -[jg] ).*)$", r"\1 -j LOG", namespace.run([program]), flags=re.M))
        options += ["--rules", f"{folder}/{tool}"]
    return options


def packets_of_iptables(program, folder, kind):
    """The matches of the files, without a target, so that each packet passes them all."""
    with Namespace(program, f"packets-{kind}") as namespace:
        for family, tool in (4, "iptables"), (6, "ip6tables"):
            matches = {MATCHES.sub("", rule.words).strip() for rule in rules_of_files(folder, family) if rule.chain == "OUTPUT"}
            rules = [Rule("filter", "OUTPUT", words) for words in sorted(matches - {""})]
            if not ALL:
                rules = random.Random(SEED).sample(rules, 50)
            restore = [f"{tool}-{kind}-restore", "--noflush"]
            load(rules, lambda some: namespace.call(restore, restore_text(some)).returncode == 0)

        words = {}

        def counters():
            count = {}
            for family, tool in (4, "iptables"), (6, "ip6tables"):
                number = 0
                for line in namespace.run([f"{tool}-{kind}-save", "-c"]).splitlines():
                    counted = re.match(r"\[(\d+):\d+\] -A OUTPUT (.*)", line)
                    if counted:
                        number += 1
                        count[family, number, counted[2]] = int(counted[1])
                        words[family, number] = counted[2]
            return count

        with tempfile.TemporaryDirectory() as saved:
            for asked in (), options_of_text(namespace, kind, saved):
                decided = unknown = 0
                for family in 4, 6:
                    of_family = lambda: {key: value for key, value in counters().items() if key[0] == family}
                    more = compare_with_packets(namespace, f"iptables-{kind} {' '.join(asked)}",
                                                lambda step: (family, step["number"], words[family, step["number"]]),
                                                of_family, [packet for packet in PACKETS if packet[0] == family], asked)
                    decided += more[0]
                    unknown += more[1]
                print(f"iptables-{kind}{', from text' if asked else ''}: of {decided + unknown} answers about real packets "
                      f"{decided} decided, {unknown} not known")
                if decided < 100:
                    fail("hardly any answer is decided")


# ---- nft

def listed_by_nft(namespace):
    """How many rules each chain has, and the packets that the rule of a chain has counted, if it counts."""
    rules, packets = collections.Counter(), {}
    for entry in json.loads(namespace.run(["nft", "-j", "list", "ruleset"]))["nftables"]:
        if "rule" not in entry:
            continue
        rule = entry["rule"]
        place = f"{rule['family']} {rule['table']}", rule["chain"]
        rules[place] += 1
        for expression in rule["expr"]:
            counter = expression.get("counter")
            if isinstance(counter, dict):
                packets[place] = counter["packets"]
    return rules, packets


def rules_of_nft(program):
    dice = random.Random(SEED)
    rounds = 60 if ALL else 2
    made = refused = 0
    decided, unknown = [0, 0, 0], [0, 0, 0]  # live, as text, as JSON
    for number in range(rounds):
        what = f"nft, seed {SEED}, round {number}"
        with Namespace(program, f"nft-{number}") as namespace:
            ruleset = nft_rules.Ruleset(dice)
            namespace.run(["nft", "-f", "-"], ruleset.declarations())
            counting = number % 2 == 0
            rules = ruleset.counting(60) if counting else ruleset.rules(60)
            loaded = load(rules, lambda some: namespace.call(["nft", "-f", "-"], "\n".join(some) + "\n").returncode == 0)
            made += len(rules)
            refused += len(rules) - len(loaded)

            # One rule may be shown as several, of which each does one thing.
            count = shown(namespace)
            for (table, chain), listed in listed_by_nft(namespace)[0].items():
                said = max((value for key, value in count.items() if key[2:] == (table, chain)), default=0)
                if said < listed and not table.startswith("arp"):
                    fail(f"{what}: {table} {chain}: {listed} rules, and show has {said}")
            if counting:
                rule_of = {}
                for text in loaded:
                    words = text.split("\n")[1].split()
                    rule_of[f"{words[2]} t", words[4]] = text

                def counters():
                    packets = listed_by_nft(namespace)[1]
                    return {(*place, rule_of[place]): value for place, value in packets.items() if place in rule_of}

                def key_of(step):
                    place = step["table"], step["chain"]
                    return (*place, rule_of.get(place))

                with tempfile.TemporaryDirectory() as saved:
                    ways = (), options_of_listing(namespace, saved), options_of_listing(namespace, saved, "-j")
                    for way, asked in enumerate(ways):
                        more = compare_with_packets(namespace, f"{what} {' '.join(asked)}", key_of, counters, PACKETS, asked)
                        decided[way] += more[0]
                        unknown[way] += more[1]
            namespace.sidetrack("show")
            left_alone(namespace, what, ["nftables", "iptables-nft"])
    print(f"nft: {made} rules of {rounds} rulesets, {refused} refused by nft or the kernel; of answers about real packets live, "
          f"from text and from JSON {decided} decided, {unknown} not known")
    if min(decided) < 100 or min(decided) < .8 * max(decided) or refused > made / 2:
        fail("the generator makes too few rules")


def main():
    program, folder = sys.argv[1:3]
    if folder:
        for kind in "legacy", "nft":
            rules_of_iptables(program, folder, kind)
            packets_of_iptables(program, folder, kind)
    rules_of_nft(program)
    return 1 if fail.count else 0


if __name__ == "__main__":
    sys.exit(main())
