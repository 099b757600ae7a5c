"""A stand-in for Kubernetes: an API server that runs each job's container as a process on this machine.

It answers the executor plugin's requests and no others. A pod's working directory is an empty folder; volumes lie where
the pod expects them. Images, limits and scheduling are ignored.
"""

import base64
import contextlib
import json
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml


class FakeKubernetes:
    """`manifests` are jobs as they were sent, `output` is what containers wrote; `refuse`: jobs fail without a run."""

    def __init__(self, environment: dict[str, str]):
        self.environment = environment
        self.manifests: list[dict] = []
        self.output: list[str] = []
        self.refuse = False
        self._status: dict[str, dict] = {}
        self._secrets: dict[str, dict[str, str]] = {}

    def create(self, manifest: dict) -> dict:
        self.manifests.append(manifest)
        name = manifest["metadata"]["name"]
        self._status[name] = {"failed": 1} if self.refuse else {"active": 1}
        if not self.refuse:
            threading.Thread(target=self._run, args=(name, manifest), daemon=True).start()
        return manifest

    def _run(self, name: str, manifest: dict) -> None:
        container = manifest["spec"]["template"]["spec"]["containers"][0]
        secrets = {}
        for variable in container.get("env") or ():
            if key := variable.get("valueFrom", {}).get("secretKeyRef"):
                secrets[variable["name"]] = base64.b64decode(self._secrets[key["name"]][key["key"]]).decode()
        with tempfile.TemporaryDirectory(prefix="pod-") as folder:
            done = subprocess.run(
                [*container["command"], *container["args"]],
                cwd=folder,
                env=self.environment | secrets,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        self.output.append(done.stdout)
        self._status[name] = {"failed": 1} if done.returncode else {"succeeded": 1}

    def answer(self, method: str, path: str, body: dict) -> dict:
        kind = path.split("?")[0].split("/")
        if method == "POST" and kind[-1] == "jobs":
            return self.create(body)
        if method == "POST" and kind[-1] == "secrets":
            self._secrets[body["metadata"]["name"]] = body["data"]
        if method == "GET" and "jobs" in kind:
            name = kind[kind.index("jobs") + 1]
            return {"kind": "Job", "metadata": {"name": name}, "status": self._status[name]}
        if method == "GET" and kind[-1] == "pods":
            return {"kind": "PodList", "items": []}
        return {"kind": "Status", "status": "Success"}


@contextlib.contextmanager
def fake_kubernetes(folder: Path, environment: dict[str, str]) -> Iterator[tuple[FakeKubernetes, Path]]:
    """Serve a stand-in; gives it and the kubeconfig file that leads to it."""
    cluster = FakeKubernetes(environment)

    class Handler(BaseHTTPRequestHandler):
        def _reply(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"{}") if length else {}
            text = json.dumps(cluster.answer(self.command, self.path, body)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_DELETE = _reply

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    kubeconfig = folder / "kubeconfig"
    address = f"http://127.0.0.1:{server.server_address[1]}"
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "fake"}
    config["clusters"] = [{"name": "fake", "cluster": {"server": address}}]
    config["users"] = [{"name": "me", "user": {"token": "none"}}]
    config["contexts"] = [{"name": "fake", "context": {"cluster": "fake", "user": "me"}}]
    kubeconfig.write_text(yaml.safe_dump(config))
    try:
        yield cluster, kubeconfig
    finally:
        server.shutdown()
        server.server_close()
