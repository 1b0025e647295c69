"""Sets by name: from the cache, or fetched from a hub, which is a small server on loopback."""

import hashlib
import http.server
import io
import json
import os
import subprocess
import sys
import threading

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from nlsom.bench.sets import SETS, load_set, open_set
from nlsom.errors import ExtraMissing, Unavailable, UsageError

SHA = "0123456789abcdef0123456789abcdef01234567"


def parquet_file(*rows):
    out = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(list(rows)), out)
    return out.getvalue()


def question(number, answer):
    picture = {"bytes": b"picture", "path": "1.jpg"}
    return {"question_id": number, "question": "Is there a dog?", "answer": answer, "image": picture}


class SmallHub(http.server.BaseHTTPRequestHandler):
    """The part of a hub's interface that its client needs for data sets."""

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        files = self.server.files
        self.server.asked.append((self.command, self.path))
        if self.path.startswith("/api/datasets/lmms-lab/POPE"):
            told = {"id": "lmms-lab/POPE", "sha": SHA, "siblings": [{"rfilename": name} for name in files]}
            self._send(json.dumps(told).encode(), {"Content-Type": "application/json"})
            return
        name = self.path.partition(f"/datasets/lmms-lab/POPE/resolve/{SHA}/")[2]
        if name not in files or name in self.server.broken:
            self.send_error(404)
            return
        tag = hashlib.sha256(files[name]).hexdigest()
        self._send(files[name], {"ETag": f'"{tag}"', "X-Repo-Commit": SHA, "Accept-Ranges": "bytes"})

    def _send(self, body, headers):
        self.send_response(200)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *told):
        pass


@pytest.fixture
def hub(monkeypatch, tmp_path):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), SmallHub)
    server.files = {
        "README.md": b"# POPE",
        "data/test-00000-of-00002.parquet": parquet_file(question("1", "yes")),
        "data/test-00001-of-00002.parquet": parquet_file(question("2", "no")),
        "Full/adversarial-00000-of-00001.parquet": b"not wanted",
    }
    server.asked, server.broken = [], set()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setattr("tqdm.tqdm.monitor_interval", 0)  # progress bars start a thread that outlives them
    monkeypatch.setenv("NLSOM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_address[1]}")
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_set_is_fetched_by_name_once_and_only_its_split(hub, tmp_path):
    first, second = load_set("pope")
    assert (first.id, first.answers, first.pictures) == ("1", ("yes",), (b"picture",))
    assert (second.id, second.answers) == ("2", ("no",))
    assert load_set("pope").path == tmp_path / "home" / "sets" / "pope"
    got = [path for command, path in hub.asked if command == "GET" and "/resolve/" in path]
    assert [path.rpartition("/")[2] for path in got] == [
        "test-00000-of-00002.parquet",
        "test-00001-of-00002.parquet",
    ]


def test_a_download_that_broke_off_goes_on_where_it_was(hub, tmp_path):
    hub.broken.add("data/test-00001-of-00002.parquet")
    with pytest.raises(
        Unavailable, match="'pope' is not on this machine, and the hub cannot be reached or does not"
    ):
        load_set("pope")
    assert not (tmp_path / "home" / "sets").exists()
    hub.broken.clear()
    hub.asked.clear()
    assert [sample.id for sample in load_set("pope")] == ["1", "2"]
    got = [path for command, path in hub.asked if command == "GET" and "/resolve/" in path]
    assert [path.rpartition("/")[2] for path in got] == ["test-00001-of-00002.parquet"]


def test_a_hub_without_the_files_says_what_to_fetch_and_where_to_put_it(hub, tmp_path):
    hub.files = {"README.md": b"# POPE"}
    with pytest.raises(Unavailable) as fault:
        load_set("pope")
    told = str(fault.value)
    assert "data/test-* of the data set lmms-lab/POPE" in told
    assert str(tmp_path / "home" / "sets" / "pope") in told
    assert "--path" in told


def test_no_hub_at_all_is_told_without_a_traceback(tmp_path):
    given = {"NLSOM_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1", "COLUMNS": "300"}
    command = [sys.executable, "-m", "nlsom_serve", "bench", "run", "solo", "--on", "pope"]
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "run")], env=os.environ | given, capture_output=True, text=True
    )
    assert done.returncode == Unavailable.exit_code
    assert "set 'pope' is not on this machine" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_files_that_a_person_put_into_the_cache_are_found(hub, tmp_path):
    folder = tmp_path / "home" / "sets" / "pope"
    folder.mkdir(parents=True)
    (folder / "any.parquet").write_bytes(parquet_file(question("7", "yes")))
    assert [sample.id for sample in load_set("pope")] == ["7"]
    assert hub.asked == []


def test_a_set_that_no_hub_is_known_for_needs_a_path(monkeypatch, tmp_path):
    monkeypatch.setenv("NLSOM_HOME", str(tmp_path))
    with pytest.raises(UsageError, match="'stvqa' cannot be fetched by name"):
        load_set("stvqa")


def test_without_the_hubs_client_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("NLSOM_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ExtraMissing, match=r"fetching the set 'pope' by its name .*nlsom\[bench\]"):
        open_set(SETS["pope"])
