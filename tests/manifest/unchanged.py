# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a manifest with a template put into its pods is else the same: unchanged.py BEFORE TEMPLATE AFTER"""
import copy
import difflib
import json
import sys

import yaml


def documents(path):
    with open(path, encoding="utf-8") as file:
        return list(yaml.safe_load_all(file))


def pods(node):
    """Each mapping that has a pod's spec."""
    if isinstance(node, list):
        for item in node:
            yield from pods(item)
    elif isinstance(node, dict):
        kind = node.get("kind", "")
        if kind == "Pod":
            yield node
        elif kind == "PodTemplate":
            yield node["template"]
        elif "items" in node:
            for item in node["items"]:
                yield from pods({"kind": kind.removesuffix("List"), **item})
        elif "jobTemplate" in (node.get("spec") or {}):
            yield node["spec"]["jobTemplate"]["spec"]["template"]
        elif "template" in (node.get("spec") or {}):
            yield node["spec"]["template"]


def without_injected(pod, template):
    """Takes out what the status names, and checks where it was."""
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    status = annotations.pop("sidecar.istio.io/status", None)
    if status is None:
        return False
    overrides = yaml.safe_load(annotations.pop("proxy.istio.io/overrides", "{}"))
    status = yaml.safe_load(status)
    assert list(status) == ["initContainers", "containers", "volumes", "imagePullSecrets", "revision"], status
    spec = pod["spec"]
    for key in ("initContainers", "containers", "volumes"):
        names = status[key] or []
        found = [item["name"] for item in spec.get(key, []) if item["name"] in names]
        assert sorted(found) == sorted(names), (key, found, names)
        place = 0 if key == "initContainers" else len(spec.get(key, [])) - len(names)
        assert [item["name"] for item in spec.get(key, [])][place:place + len(names)] == names, (key, names)
        for item in spec.get(key, []):
            wanted = [one for one in template.get(key, []) if one["name"] == item["name"]]
            # Of the pod's own, which may have been in the other list.
            own = [one for each in overrides.values() for one in each if one["name"] == item["name"]]
            if item["name"] in names and item["name"] != "istio-init" and not own:
                assert [item] == wanted, (item, wanted)
        spec[key] = [item for item in spec.get(key, []) if item["name"] not in names] + overrides.get(key, [])
    assert status["initContainers"][0] == "istio-init"
    return True


def bare(pod):
    """The same form for both: lists that are empty or not there, the places of overridden containers."""
    pod["metadata"] = metadata = pod.pop("metadata", None) or {}
    if not metadata.get("annotations"):
        metadata.pop("annotations", None)
    pod["spec"] = pod.pop("spec", None) or {}
    for key in ("initContainers", "containers", "volumes"):
        items = [item for item in pod["spec"].get(key) or [] if key != "initContainers" or item["name"] != "istio-init"]
        for item in items:  # "auto" stands for the template's image, and is not kept
            if item.get("image") == "auto":
                del item["image"]
        pod["spec"].pop(key, None)
        pod["spec"][key] = items


def in_order(node):
    """A value that compares with the order of keys. Merge keys put theirs elsewhere: those mappings are sorted."""
    if isinstance(node, dict):
        return [(key, in_order(value)) for key, value in node.items()]
    return [in_order(item) for item in node] if isinstance(node, list) else (type(node).__name__, node)


def main():
    before_path, template_path, after_path = sys.argv[1:]
    before, after = documents(before_path), documents(after_path)
    template = documents(template_path)[0]["spec"]
    assert len(before) == len(after), "documents"
    injected = 0
    for old, new in zip(before, after):
        changed = copy.deepcopy(new)
        old_pods, new_pods = list(pods(old)), list(pods(changed))
        assert len(old_pods) == len(new_pods)
        for old_pod, new_pod in zip(old_pods, new_pods):
            own = {item["name"] for item in (old_pod.get("spec") or {}).get("containers") or []}
            if without_injected(new_pod, template):
                injected += 1
            bare(old_pod)
            bare(new_pod)
            shared = own & {item["name"] for item in template.get("containers", []) + template.get("initContainers", [])}
            if shared:
                for pod in (old_pod, new_pod):
                    for key in ("initContainers", "containers"):
                        pod["spec"][key].sort(key=lambda item: item["name"])
        if old is not None:
            with_merges = "<<" in open(before_path, encoding="utf-8").read()
            same = old == changed if with_merges else in_order(old) == in_order(changed)
            if not same:
                lines = [json.dumps(document, indent=1, default=str).splitlines() for document in (old, changed)]
                sys.exit("\n".join(difflib.unified_diff(*lines, lineterm="", n=1)))
    return injected


if __name__ == "__main__":
    main()
