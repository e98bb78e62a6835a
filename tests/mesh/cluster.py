"""The cluster as the scenarios see it: kubectl, pods with their processes and logs, and one line for each thing that is checked."""
import json
import pathlib
import subprocess
import time

import yaml

NODE = pathlib.Path("/run/node")
HERE = pathlib.Path(__file__).parent


def run(*command, data=None, check=True, timeout=180):
    """Runs a command and returns its output; one that fails says what it printed."""
    done = subprocess.run(command, input=data, capture_output=True, text=True, timeout=timeout, check=False)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def kubectl(*words, data=None, check=True):
    return run("kubectl", *words, data=data, check=check)


def get(*words):
    return json.loads(kubectl("get", *words, "-o", "json"))


def apply(objects):
    """Applies them. Of those for which a busy istiod has not answered in time, creates what is missing, up to four times."""
    text = yaml.safe_dump_all(objects)
    for attempt in range(5):
        try:
            kubectl(*(("create", "-f", "-") if attempt else ("apply", "-f", "-")), data=text)
            return
        except RuntimeError as error:
            missing = [line for line in str(error).splitlines() if line.startswith("Error") and "AlreadyExists" not in line]
            if attempt and not missing:
                return
            if attempt == 4 or not all("failed calling webhook" in line for line in missing):
                raise


def eventually(seconds, condition):
    """Until the condition returns something true, which is returned; what it returned or raised last if that never comes."""
    end = time.monotonic() + seconds
    while True:
        try:
            if value := condition():
                return value
            last = value
        except (RuntimeError, OSError, KeyError, IndexError) as error:
            last = error
        if time.monotonic() > end:
            raise RuntimeError(f"not within {seconds} s: {condition.__doc__ or condition.__name__}: {last}")
        time.sleep(0.2)


class Checks:
    """Prints a line for each check."""

    def __init__(self):
        self.passed = 0
        self.failures = []

    def check(self, what, problem):
        """The problem: empty if the check passes, else what is wrong."""
        if problem:
            self.failures.append(what)
            print(f"FAILED  {what}")
            for line in str(problem).splitlines():
                print(f"        {line}")
        else:
            self.passed += 1
            print(f"ok      {what}")
        return not problem

    def attempt(self, what, action):
        """A check that passes if the action does not raise."""
        try:
            action()
            return self.check(what, "")
        except Exception as error: # whatever it is, the other checks still say what they find
            return self.check(what, str(error) or repr(error))

    def summary(self):
        """Names what failed once more: of a long output often the end alone is kept."""
        for what in self.failures:
            print(f"FAILED  {what}")
        print(f"{self.passed} passed, {len(self.failures)} failed")
        return not self.failures


def differs(got, expected):
    return "" if got == expected else f"got {got!r}, expected {expected!r}"


class Pod:
    """A running pod: its addresses, the network namespace of its app, and the access log of its proxy."""

    def __init__(self, found):
        self.namespace, self.name = found["metadata"]["namespace"], found["metadata"]["name"]
        self.uid = found["metadata"]["uid"]
        self.addresses = [each["ip"] for each in found["status"].get("podIPs", [])]
        self.spec = found["spec"]
        self.containers = {each["name"]: each["containerID"].rpartition("/")[2]
                           for kind in ("initContainerStatuses", "containerStatuses")
                           for each in found["status"].get(kind, []) if each.get("containerID")}
        self.process = None
        self.network = None # the file of its network namespace; default: that of its process

    def init_container(self, name):
        return next((each for each in self.spec.get("initContainers", []) if each["name"] == name), None)

    def inside(self, *command, user=0):
        """Runs a command in the network namespace of the pod."""
        return run("nsenter", f"--net={self.network or f'/proc/{self.process}/ns/net'}", f"--setuid={user}", f"--setgid={user}", "--", *command, check=False, timeout=900)

    def client(self, *words, user=1000):
        said = self.inside("python3", str(HERE / "client.py"), *words, user=user)
        return json.loads(said) if said else {"error": "the client ended"}

    def log(self, container="istio-proxy"):
        folder = pathlib.Path(f"/var/log/pods/{self.namespace}_{self.name}_{self.uid}/{container}")
        return "".join(each.read_text() for each in sorted(folder.glob("*.log")))

    def access_log(self):
        entries = []
        for line in self.log().splitlines():
            _, _, text = line.partition(" F ")
            if text.startswith('{"') and '"original_destination"' in text:
                entries.append(json.loads(text))
        return entries


def network_of(address):
    """The file of the network namespace that has an address: of a pod whose containers do not run, too."""
    for file in pathlib.Path("/run/netns").glob("cni-*"):
        if f" {address}/" in run("ip", "-netns", file.name, "-brief", "address", check=False):
            return str(file)
    raise RuntimeError(f"no network namespace has {address}")


def processes():
    """The first process of each container, by its id."""
    found = {}
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            container = (folder / "cgroup").read_text().splitlines()[0].rpartition("/")[2]
        except (OSError, IndexError):
            continue
        found.setdefault(container, []).append(int(folder.name))
    return {container: min(ids) for container, ids in found.items()}


def is_ready(found):
    return any(each["type"] == "Ready" and each["status"] == "True" for each in found.get("status", {}).get("conditions", []))


def why_not_ready(found):
    """What the containers of a pod wait for."""
    states = [(each["name"], each["state"]) for kind in ("initContainerStatuses", "containerStatuses")
              for each in found["status"].get(kind, []) if not each.get("ready")]
    return f"{found['metadata']['namespace']}/{found['metadata']['name']}: {states}"


def ready_pods(namespaces, seconds=180):
    """All pods of some namespaces, by (namespace, name), as soon as all of them are ready."""
    def all_ready():
        """all pods are ready"""
        found = [pod for name in namespaces for pod in get("pods", "--namespace", name)["items"] if "deletionTimestamp" not in pod["metadata"]]
        waiting = [pod for pod in found if not is_ready(pod)]
        if waiting or not found:
            raise RuntimeError("; ".join(why_not_ready(pod) for pod in waiting) or "there are none")
        return found
    pods = {}
    all_processes = None
    for found in eventually(seconds, all_ready):
        all_processes = all_processes or processes()
        pod = Pod(found)
        app = pod.containers.get("app") or next(iter(pod.containers.values()))
        pod.process = all_processes.get(app)
        pods[pod.namespace, pod.name] = pod
    return pods
