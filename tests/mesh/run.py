#!/usr/bin/env python3
"""Istio's scenarios on the node of scripts/kubernetes:  run.py [--short] [--only PHASE] IMAGE PROGRAM

--list prints the phases. IMAGE holds the PROGRAM. Prints a line for each thing that is checked."""
import argparse
import sys
import time

sys.dont_write_bytecode = True # the tree stays as it is

from cluster import Checks
from mesh import install_istio, start_world
from phases import ASKED, LONG, PHASES, Phase, remove_namespaces


class List(argparse.Action):
    def __call__(self, *_):
        print(*PHASES, *ASKED)
        sys.exit(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", choices=[*PHASES, *ASKED])
    parser.add_argument("--list", action=List, nargs=0, help="the phases")
    parser.add_argument("--pods", type=int, default=20, help="of each kind that are measured")
    parser.add_argument("image")
    parser.add_argument("program")
    arguments = parser.parse_args()
    checks = Checks()
    phase = Phase(checks, arguments.short)
    phase.pods_to_measure = arguments.pods
    world = start_world()
    started = time.monotonic()
    checks.attempt("istioctl installs Istio", lambda: install_istio(arguments.image))
    print(f"Istio is installed after {time.monotonic() - started:.0f} s")
    for name, action in (PHASES | ASKED).items():
        if arguments.only == name or arguments.only is None and name in PHASES and not (arguments.short and name in LONG):
            started = time.monotonic()
            checks.attempt(f"phase {name} runs to its end", lambda action=action: action(phase, arguments.image, arguments.program))
            if arguments.short:
                remove_namespaces(wait=False)
            else:
                checks.attempt(f"the namespaces of phase {name} can be removed", lambda: remove_namespaces(wait=True))
            print(f"phase {name}: {time.monotonic() - started:.0f} s", flush=True)
    world.terminate()
    return 0 if checks.summary() else 1


if __name__ == "__main__":
    sys.exit(main())
