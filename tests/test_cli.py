"""The command line: what it prints, what it exits with, and that no traceback reaches a user."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

PANEL = str(Path(__file__).parent / "societies" / "panel.yaml")
NLSOM = [sys.executable, "-m", "nlsom_serve"]


def nlsom(
    *words: str | Path, home: Path | None = None, path: Path | None = None
) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    if home is not None:
        env["NLSOM_HOME"] = str(home)
    if path is not None:
        env["PYTHONPATH"] = str(path)
    done = subprocess.run([*NLSOM, *map(str, words)], capture_output=True, text=True, timeout=300, env=env)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_ask_shows_the_dialogue_and_the_verdict():
    done = nlsom("ask", PANEL, "What is it?", "--choices", "cat,dog")
    assert done.returncode == 0
    for words in ("ann: a cat", "bob: a dog", "answer, round 2", "cat  (67%)", "plurality: cat 2, dog 1"):
        assert words in done.stdout


def test_a_terminal_shows_that_a_society_is_being_opened_and_a_pipe_does_not():
    ask = [*NLSOM, "ask", PANEL, "What is it?", "-q"]
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm"}
    subprocess.run(ask, stdout=subprocess.DEVNULL, stderr=theirs, timeout=300, check=True, env=env)
    os.close(theirs)
    assert "opening panel" in os.read(ours, 10_000).decode()
    os.close(ours)
    assert nlsom(*ask[len(NLSOM) :]).stderr == ""


def test_ask_as_json_is_one_object_with_the_documented_fields():
    done = nlsom("ask", PANEL, "What is it?", "-c", "cat,dog", "--json")
    told = json.loads(done.stdout)
    assert told["answer"] == "cat"
    assert told["tally"] == {"cat": 2.0, "dog": 1.0}
    for field in ("confidence", "rule", "tied", "abstained", "cut_short", "rounds", "mindstorm"):
        assert field in told
    for usage in (told["usage"], told["usage_total"]):
        assert set(usage) == {"calls", "prompt_tokens", "cached_tokens", "completion_tokens", "seconds"}


def test_quiet_prints_the_answer_only():
    assert nlsom("ask", PANEL, "What is it?", "-c", "cat,dog", "-q").stdout == "cat\n"


def test_what_models_up_would_run_is_shown_where_there_is_no_vllm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("NLSOM_VLLM", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    done = nlsom("models", "up", "small-vlm", "--dry-run", home=tmp_path)
    assert done.returncode == 0
    assert f"vllm serve --config {tmp_path}/servers/small-vlm.vllm.yaml" in done.stdout
    assert '"model": "Qwen/Qwen3-VL-2B-Instruct"' in done.stdout
    assert "vLLM is not installed" in done.stderr


def test_programs_read_what_models_down_ended(tmp_path: Path):
    assert json.loads(nlsom("models", "down", "--json", home=tmp_path).stdout) == []
    done = nlsom("models", "up", "small-vlm", "--dry-run", "--json", home=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")


def test_a_tie_is_told_and_is_no_verdict():
    done = nlsom(
        "ask", PANEL, "What is it?", "-c", "cat,dog", "--set", "members.cy.says={answer: x, ballot: nothing}"
    )
    assert done.returncode == 3
    assert "tied between cat, dog" in done.stdout
    assert "cy abstained" in done.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["ask", "vqa-monarky", "?"], "did you mean 'vqa-monarchy'?"),
        (["ask", "no-such.yaml", "?"], "no-such.yaml"),
        (["ask", PANEL, "?", "--model", "llm"], "write NAME=URL"),
        (["ask", PANEL, "?", "--model", "llm=http://127.0.0.1:9/v1"], "has no model 'llm'"),
        (["ask", PANEL, "?", "--set", "limits"], "write KEY=VALUE"),
        (["ask", PANEL, "?", "--set", "limitz.tokens=5"], "did you mean 'limits'?"),
        (["ask", PANEL, "?", "--image", "no-such.jpg"], "no-such.jpg"),
        (["ask", PANEL, "?", "--image", "sample:kat"], "kat"),
        (["ask", PANEL], "QUESTION"),
        (["caption", "caption-monarchy"], "needs a picture"),
        (["replay", "no-such.sqlite"], "no such trace"),
        (["replay", PANEL], "no SQLite file"),
        (["traces", "verify", "no-such.sqlite"], "no such trace"),
        (["ask", PANEL, "?", "--trace", "no/such/folder/run.sqlite"], "cannot be opened"),
        (["ask", PANEL, " "], "the question is empty"),
        (["ask", PANEL, "?", "--choices", "cat, dog,cat"], "'cat' is there more than once"),
        (["ask", PANEL, "?", "--choices", "cat"], "two options at least"),
        (["models", "path", "nothing"], "nothing"),
    ],
)
def test_wrong_usage_is_told_in_a_line_and_exits_with_2(words, told):
    done = nlsom(*words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert told in done.stderr


def test_a_picture_that_is_not_there_is_told_before_a_model_is_fetched(tmp_path):
    done = nlsom("ask", "solo", "Is it red?", "--image", "no-such.jpg", home=tmp_path)
    assert done.returncode == 2
    assert "no-such.jpg: no such file" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_cannot_be_reached_exits_with_4():
    done = nlsom(
        "ask", "solo", "Is it red?", "--image", "sample:cat", "--model", "vlm=http://127.0.0.1:9/v1#m"
    )
    assert done.returncode == 4
    assert "127.0.0.1:9" in done.stderr


def test_societies_are_listed_shown_and_checked(tmp_path):
    listed = json.loads(nlsom("societies", "list", "--json").stdout)
    assert {"solo", "vqa-monarchy", "vqa-democracy", "caption-monarchy"} <= {row["society"] for row in listed}
    shown = nlsom("societies", "show", PANEL).stdout
    assert "up to 2 rounds, until 100% give the same 'answer':" in shown
    assert "verdict by plurality" in shown
    solo = nlsom("societies", "show", "solo").stdout
    assert "model llm: embedded qwen2.5-coder-1.5b" in solo
    assert "model vlm: none; --model vlm=URL gives one" in solo
    given = nlsom("societies", "show", "solo", "--model", "vlm=http://127.0.0.1:9/v1#m", "--json").stdout
    assert json.loads(given)["models"]["vlm"] == {"url": "http://127.0.0.1:9/v1", "model": "m"}
    assert nlsom("societies", "check", PANEL).stdout.strip().endswith("good")
    assert nlsom("societies", "check", "solo").stdout == "solo: good\n"
    bad = tmp_path / "bad.yaml"
    bad.write_text("name: x\nmembers:\n  a: {agent: scripd}\nmindstorm:\n  - {ask: b, prompt: vote}\n")
    done = nlsom("societies", "check", bad)
    assert done.returncode == 2
    assert f"{bad}:3:14: no plugin in agents is called 'scripd'; did you mean 'script'?" in done.stderr
    assert "2 faults" in done.stderr


def test_the_check_as_json_lists_files_and_their_faults(tmp_path):
    bad, absent = tmp_path / "bad.yaml", tmp_path / "absent.yaml"
    bad.write_text("name: x\nmembers:\n  a: {agent: scripd}\nmindstorm:\n  - {ask: a, prompt: vote}\n")
    done = nlsom("societies", "check", PANEL, bad, absent, "--json")
    assert done.returncode == 2
    good, faulty, missing = json.loads(done.stdout)
    assert good == {"file": PANEL, "faults": []}
    assert [fault["where"] for fault in faulty["faults"]] == [f"{bad}:3:14"]
    assert "No such file" in missing["faults"][0]["what"]
    assert done.stderr == ""


def test_no_control_character_of_what_was_said_reaches_the_terminal():
    says = 'members.cy.says="I see a \\e[31mdog\\e]0;title\\a"'
    done = nlsom("ask", PANEL, "Wh\x1b[2Jat [bold]is[/] it?", "-c", "c\x9bat,dog", "--set", says)
    assert "cy: I see a \ufffd[31mdog\ufffd]0;title\ufffd" in done.stdout
    assert "Wh\ufffd[2Jat [bold]is[/] it?" in done.stdout
    assert not {"\x1b", "\x07", "\x9b"} & set(done.stdout + done.stderr)


def test_the_schema_is_a_json_schema():
    told = json.loads(nlsom("societies", "schema").stdout)
    assert "mindstorm" in told["properties"]


def test_agents_and_models_are_listed(tmp_path):
    agents = json.loads(nlsom("agents", "list", "--json").stdout)
    assert {"chat", "vision", "detect", "tag", "ocr", "colour", "script"} <= {row["agent"] for row in agents}
    assert all(row["about"] for row in agents)
    models = json.loads(nlsom("models", "list", "--json", home=tmp_path).stdout)
    assert not any(row["here"] for row in models)


def test_the_path_of_a_model_that_is_not_here_is_no_path(tmp_path):
    done = nlsom("models", "path", "smollm2-135m", home=tmp_path)
    assert (done.returncode, done.stdout) == (4, "")
    assert "nlsom models pull smollm2-135m" in done.stderr


def test_the_doctor_says_what_to_do_about_what_is_missing(tmp_path):
    told = json.loads(nlsom("doctor", "--json", home=tmp_path).stdout)
    assert any(row["what"] == "Python" and row["state"] == "good" for row in told)
    missing = [row for row in told if "is not here" in row["told"]]
    assert missing
    assert all(row["do"].startswith("nlsom models pull") for row in missing)


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A folder with an installed distribution none of whose plugins can be imported."""
    (tmp_path / "parrot.py").write_text("raise RuntimeError('no [seeds] left')")
    info = tmp_path / "parrot-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: parrot\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[nlsom.agents]\nparrot = parrot:Parrot\n[nlsom.societies]\nbirds = parrot\nplain = json.decoder\n"
    )
    return tmp_path


def test_the_doctor_names_plugins_that_cannot_be_imported(broken):
    told = json.loads(nlsom("doctor", "--json", path=broken).stdout)
    faults = [row["told"] for row in told if row["state"] == "bad" and row["what"] == "plugin"]
    assert faults == [
        "'parrot' (of agents) cannot be imported: RuntimeError: no [seeds] left",
        "'birds' (of societies) cannot be imported: RuntimeError: no [seeds] left",
        "'plain' (of societies) is no package, and so holds no society files",
    ]
    assert "RuntimeError: no [seeds] left" in nlsom("doctor", path=broken).stdout
    assert "RuntimeError: no [seeds] left" in nlsom("agents", "list", path=broken).stdout


def test_a_broken_package_of_societies_hurts_no_other(broken):
    assert nlsom("ask", PANEL, "?", "-c", "cat,dog", "-q", path=broken).stdout == "cat\n"
    listed = nlsom("societies", "list", "--json", path=broken)
    assert "solo" in {row["society"] for row in json.loads(listed.stdout)}
    assert "'birds' (of societies) cannot be imported" in listed.stderr
    done = nlsom("ask", "parrots", "?", path=broken)
    assert done.returncode == 2
    assert "'birds' (of societies) cannot be imported: RuntimeError" in done.stderr


def test_the_version_is_told():
    assert nlsom("--version").stdout == f"nlsom {version('nlsom')}\n"


def test_a_shell_completes_commands_and_the_names_of_societies():
    def completed(words: str) -> str:
        env = {**os.environ, "_NLSOM_COMPLETE": "complete_bash", "COMP_WORDS": words}
        env["COMP_CWORD"] = str(len(words.split()) - 1)
        code = "import sys; from nlsom_serve.main import main; sys.argv = ['nlsom']; main()"
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=env
        ).stdout

    assert completed("nlsom rep").split() == ["replay"]
    assert completed("nlsom ask vqa-mon").split() == ["vqa-monarchy"]
    assert completed("nlsom worker --society vqa-mon").split() == ["vqa-monarchy"]
    assert completed("nlsom ask solo Q --image sample:c").split() == ["sample:coffee", "sample:cat"]
    assert completed("nlsom ask solo Q --image c").split() == [], "the shell completes files then"
    script = subprocess.run(
        [sys.executable, "-c", "import sys; from nlsom_serve.main import main; sys.argv = ['nlsom']; main()"],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "_NLSOM_COMPLETE": "source_bash"},
    ).stdout
    assert "complete -o default -F _nlsom_completion nlsom" in script


def test_every_command_shows_an_example_in_its_help():
    def commands(*words: str) -> list[list[str]]:
        text = nlsom(*words, "--help").stdout
        table = text[text.find("Commands") :] if "Commands" in text else ""
        names = [
            line.strip("│ ").split()[0]
            for line in table.splitlines()[1:]
            if line.startswith("│ ") and line[2] != " "
        ]
        return [[*words, name] for name in names]

    tops = commands()
    leaves = [leaf for top in tops for leaf in (commands(*top) or [top])]
    assert len(leaves) > 12
    for words in ([], *tops, *leaves):
        assert "Example" in nlsom(*words, "--help").stdout, words


def test_a_run_with_a_trace_is_not_asked_again_and_is_replayed(tmp_path):
    trace = tmp_path / "run.sqlite"
    asked = ["ask", PANEL, "What is it?", "-c", "cat,dog", "--trace", str(trace)]
    first = nlsom(*asked)
    again = nlsom(*asked)
    assert again.returncode == 0
    assert again.stdout.count("from the trace") == 7
    replayed = nlsom("replay", trace)
    assert replayed.returncode == 0
    assert "ann: a cat" in replayed.stdout
    assert "cat  (67%)" in replayed.stdout
    assert "from the trace" not in first.stdout
    told = json.loads(nlsom("replay", trace, "--json").stdout)
    assert len(told["messages"]) == 7
    assert told["verdict"]["answer"] == "cat"


def test_beside_what_was_called_now_stands_what_the_whole_mindstorm_cost(tmp_path):
    one = tmp_path / "one.yaml"
    one.write_text(
        "name: one\nmodels: {llm: {scripted: 1}}\nmembers: {a: {agent: chat, model: llm}}\n"
        "mindstorm: [{ask: a, prompt: {text: Say.}}]\n"
    )
    asked = [nlsom("ask", one, "What is it?", "--trace", tmp_path / "run.sqlite") for _ in range(2)]
    assert "1 model call," in asked[0].stdout
    assert "with stored replies" not in asked[0].stdout
    assert "0 model calls," in asked[1].stdout
    assert "with stored replies: 1 model call, " in asked[1].stdout


def test_which_mindstorm_to_replay_is_asked_where_there_are_several(tmp_path):
    trace = tmp_path / "run.sqlite"
    for seed in ("1", "2"):
        nlsom("ask", PANEL, "What is it?", "-c", "cat,dog", "--trace", trace, "--seed", seed)
    done = nlsom("replay", trace)
    assert done.returncode == 2
    assert "2 mindstorms; say which" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("how", [[], ["-q"], ["--json"]])
def test_a_full_disk_behind_the_output_is_told_in_a_line(how):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*NLSOM, "ask", PANEL, "?", "-c", "cat,dog", *how], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1
    assert done.stderr == "nlsom: No space left on device\n"


@pytest.mark.parametrize("how", [[], ["--json"]])
def test_a_terminal_that_knows_only_ascii_is_no_fault(how):
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    words = [*NLSOM, "ask", PANEL, "¿Qué?", "-c", "el niño,dog", *how]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0, done.stderr
    if how:
        assert json.loads(done.stdout)["answer"] == "el niño"
    else:
        assert "el ni?o" in done.stdout


@pytest.mark.parametrize("society", [PANEL, "nope.yaml"])
def test_a_terminal_whose_width_is_told_as_0_is_printed_to_all_the_same(society):
    words = [*NLSOM, "ask", society, "?", "-c", "cat,dog"]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=300, env={**os.environ, "COLUMNS": "0"}
    )
    assert "cat" in done.stdout or "nope.yaml: No such file" in done.stderr


def test_ctrl_c_ends_cleanly(tmp_path):
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(120)
    port = server.getsockname()[1]
    slow = tmp_path / "slow.yaml"
    slow.write_text(
        "name: slow\n"
        f"models:\n  llm: {{url: 'http://127.0.0.1:{port}/v1', model: m}}\n"
        "members:\n  a: {agent: chat, model: llm}\n"
        "mindstorm:\n  - {ask: a, prompt: {text: hello}}\n"
    )
    command = [*NLSOM, "ask", str(slow), "?"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with server:
        calling, _ = server.accept()  # It is answered by nobody, and so asks for as long as it may.
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=60)
        calling.close()
    assert "Traceback" not in errors
    assert running.returncode == 130


def test_ctrl_c_while_modules_are_imported_is_no_traceback():
    code = (
        "import os, signal, sys, nlsom_serve.main as begun\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'nlsom_serve.cli': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "begun.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (130, "")
