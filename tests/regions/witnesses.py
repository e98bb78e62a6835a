# Of each ending, one packet as explain sees it: python3 witnesses.py PROGRAM RULES MAP
import json
import subprocess
import sys

program, rules, path = sys.argv[1:]
with open(path) as file:
    regions = json.load(file)["regions"]
if not regions:
    sys.exit(f"FAILED: {rules}: no regions")

failed = False
asked = {(one["ending"], one["packets"]["way"]): one for one in regions if one.get("witness")}
for region in asked.values():
    command = [program, "explain", *region["witness"].split(), "--rules", rules, "--json"]
    told = subprocess.run(command, capture_output=True, text=True)
    try:
        outcome = json.loads(told.stdout)["outcome"]
    except ValueError:
        outcome = {"kind": told.stderr}
    if outcome["kind"] != region["kind"]:
        print(f"FAILED: {rules}: {region['witness']}: {region['ending']}, but explain: {outcome}")
        failed = True
sys.exit(failed)
