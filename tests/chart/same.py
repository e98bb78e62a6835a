"""Compares the objects that the chart renders with those of container/:  same.py RENDERED FILE… [--secret]

Left out is what helm adds (labels, hooks), when the injector's template was changed last, and the certificate. With --secret the
Secret with it is there, too."""
import sys

import yaml

ADDED = ("helm.sh/", "app.kubernetes.io/", "meta.helm.sh/", "checksum/")


def objects(file):
    with open(file, encoding="utf-8") as text:
        found = [each for each in yaml.safe_load_all(text) if each]
    for each in found:
        for metadata in (each["metadata"], each.get("spec", {}).get("template", {}).get("metadata", {})):
            for kind in ("labels", "annotations"):
                kept = {name: value for name, value in metadata.get(kind, {}).items() if not name.startswith(ADDED)}
                metadata.pop(kind, None)
                if kept:
                    metadata[kind] = kept
        if each["kind"] == "ConfigMap": # as the injector reads it
            each["data"] = {name: yaml.safe_load(value) for name, value in each["data"].items()}
        for webhook in each.get("webhooks", []):
            del webhook["clientConfig"]["caBundle"]
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


def differences(got, expected, path):
    """Where two values differ, by their paths."""
    if isinstance(got, dict) and isinstance(expected, dict):
        for name in sorted(got.keys() | expected.keys()):
            if name not in got:
                yield f"{path}.{name}: missing; expected {expected[name]!r}"
            elif name not in expected:
                yield f"{path}.{name}: {got[name]!r}; not in container/"
            else:
                yield from differences(got[name], expected[name], f"{path}.{name}")
    elif isinstance(got, list) and isinstance(expected, list) and len(got) == len(expected):
        for number, (one, other) in enumerate(zip(got, expected)):
            yield from differences(one, other, f"{path}[{number}]")
    elif got != expected or type(got) is not type(expected):
        yield f"{path}: {got!r}; expected {expected!r}"


def main():
    rendered, *files = (word for word in sys.argv[1:] if word != "--secret")
    got = objects(rendered)
    expected = {}
    for file in files:
        expected |= objects(file)
    if "--secret" in sys.argv:
        secret = got.pop(("Secret", "sidetrack-injector"), {})
        if secret.get("type") != "kubernetes.io/tls" or sorted(secret.get("data", {})) != ["ca.crt", "tls.crt", "tls.key"]:
            sys.exit(f"the Secret: {secret}")
    if not expected:
        sys.exit("no objects are expected")
    found = list(differences({" ".join(name): each for name, each in got.items()}, {" ".join(name): each for name, each in expected.items()}, ""))
    if found:
        sys.exit("\n".join(found))


main()
