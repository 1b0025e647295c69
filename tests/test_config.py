"""Society files: everything that is wrong at once, with its place; overrides, models, seats."""

from __future__ import annotations

import re
import tempfile
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nlsom
from nlsom import config
from nlsom.errors import ConfigError, UsageError
from nlsom.source import as_json
from nlsom.spec import schema

GOOD = {
    "name": "panel",
    "members": {"mind": {"agent": "script", "says": "yes", "count": "3"}},
    "mindstorm": [{"ask": "mind", "prompt": {"text": "Vote."}, "as": "ballot", "form": "answer"}],
}
CHATS = {"a": {"agent": "chat", "model": "llm"}}


def written(tmp_path, text):
    path = tmp_path / "s.yaml"
    path.write_text(textwrap.dedent(text))
    return path


def faults(society, **more) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        nlsom.load(society, **more)
    return [str(fault) for fault in caught.value.faults]


def names(society) -> list[str]:
    return [member.name for member in society.members]


def with_(**changes):
    return {**GOOD, **changes}


class TestFaults:
    def test_all_faults_are_told_at_once_with_line_column_and_what_was_meant(self, tmp_path):
        path = written(
            tmp_path,
            """\
            name: x
            abuot: typo
            members:
              mind: {agent: scirpt, says: yes}
              other: {agent: script, sayz: yes}
            structure: monarky
            mindstorm:
              - {ask: mnid, promt: answer, as: ballot}
              - {ask: other, prompt: {text: "{{ quesion }}"}, as: vote, form: nonsense}
            verdict: {rule: pluralty}
            limits: {tokens: many, secnods: 3}
            """,
        )
        told = faults(path)
        where = {fault.removeprefix(f"{path}:").partition(": ")[0]: fault for fault in told}
        for place, what in {
            "2:1": "did you mean 'about'",
            "4:": "did you mean 'script'",
            "5:": "sayz",
            "6:": "did you mean 'monarchy'",
            "10:": "did you mean 'plurality'",
            "11:18": "whole number",
            "11:24": "did you mean 'seconds'",
        }.items():
            assert any(one.startswith(place) and what in fault for one, fault in where.items()), (place, told)
        assert told == sorted(told, key=lambda fault: int(fault.removeprefix(f"{path}:").split(":")[0]))

    def test_a_fault_within_rounds_hides_no_other_and_makes_none_up(self, tmp_path):
        path = written(
            tmp_path,
            """\
            name: s
            members:
              a: {agent: script, says: x}
            mindstorm:
              - repeat: two
                phases:
                  - {ask: a, prompt: {text: Say.}, form: {text: {max_token: 5}}}
                  - {ask: evryone, prompt: {text: Say.}, form: {chioce: {}}}
                  - {ask: a, -rompt: {text: Say.}}
              - {repeat: 2, ask: a, prompt: {text: Say.}}
              - {repeat: 1000000000, phases: [{ask: a, prompt: {text: Say.}}]}
            """,
        )
        told = [fault.removeprefix(f"{path}:") for fault in faults(path)]
        for (place, what), fault in zip(
            (
                ("5:13", "whole number"),
                ("7:46", "unknown key 'max_token'"),
                ("8:15", "did you mean 'everyone'?"),
                ("8:52", "'chioce' found"),
                ("9:9", "'prompt' is missing"),
                ("9:18", "did you mean 'prompt'?"),
                ("10:5", "'phases' is missing"),
                ("10:17", "there are repeat, phases, until"),
                ("10:25", "there are repeat, phases, until"),
                ("11:14", "less than or equal to 10000"),
            ),
            told,
            strict=True,
        ):
            assert fault.startswith(place), told
            assert what in fault, told

    def test_words_that_yaml_would_retype_stay_words(self, tmp_path):
        path = written(
            tmp_path,
            """\
            name: no
            members:
              on: {agent: script, says: [007, 12:30, 3.10, yes], role: off}
            mindstorm:
              - {ask: on, prompt: {text: no}}
            """,
        )
        society = nlsom.load(path)
        assert society.name == "no"
        assert [(m.name, m.role) for m in society.members] == [("on", "off")]
        assert society.seats[0].agent.identity == "script/1 ['007', '12:30', '3.10', 'yes']"

    @pytest.mark.parametrize(
        ("changes", "told"),
        [
            ({"members": {}}, "members"),
            ({"mindstorm": []}, "mindstorm"),
            ({"members": {"a": {"role": "x"}}}, "`agent` is missing"),
            ({"members": {"a": {"agent": "chat"}}}, "needs a model"),
            ({"members": {"a": {"agent": "chat", "model": "llm"}}}, "no model is called 'llm'"),
            ({"members": {"a": {"agent": "script", "says": "x", "model": "llm"}}}, "takes no model"),
            ({"members": {"a": {"agent": "script"}}}, "says"),
            ({"structure": {"ring": None, "star": None}}, "one structure"),
            ({"verdict": {"of": "nobody"}}, "no member or role is called 'nobody'"),
            ({"verdict": {"over": "nothing"}}, "no phase is labelled 'nothing'; there are ballot$"),
            ({"members": {"a": {"agent": "chat", "modell": "llm"}}}, "unknown key 'modell'"),
            ({"members": {"a": {"agent": "mcp", "tool": "x", "command": "x -y"}}}, "has to be a list"),
            ({"structure": {"edges": [["mind"]]}}, "item 2 is missing"),
            ({"structure": {"edges": [["mind", "mind", "mind"]]}}, "too many"),
            ({"members": {"mind": {**GOOD["members"]["mind"], "limit": "few"}}}, "a whole number, not 'few'"),
            ({"members": {"mind": {**GOOD["members"]["mind"], "count": "9" * 50}}}, "more than"),
            ({"task": "vqaa"}, "did you mean 'vqa'"),
            ({"models": {"llm": {"nonsense": "x"}}, "members": CHATS}, "exactly one"),
            ({"models": {"llm": {"optional": "true"}}, "members": CHATS}, "is not given"),
        ],
    )  # fmt: skip
    def test_each_fault_says_what_is_wrong(self, changes, told):
        assert any(re.search(told, fault) for fault in faults(with_(**changes)))

    def test_each_faulty_edge_is_told_at_its_place(self, tmp_path):
        path = written(
            tmp_path,
            """\
            name: s
            members: {a: {agent: script, says: x}}
            structure: {edges: [[a, a], a->a, [a]]}
            mindstorm: [{ask: a, prompt: {text: Say.}, as: ballot}]
            """,
        )
        assert [fault.removeprefix(f"{path}:") for fault in faults(path)] == [
            "3:29: this has to be a list, `[a, b]`, not 'a->a'",
            "3:35: item 2 is missing",
        ]

    def test_a_faulty_condition_is_not_told_to_be_missing_too(self):
        rounds = {"repeat": "2", "phases": GOOD["mindstorm"], "until": {"agreement": "80%", "over": "ballot"}}
        assert len(faults(with_(mindstorm=[rounds]))) == 1

    def test_where_something_began_that_has_no_end_is_told_and_a_second_document_named(self, tmp_path):
        assert "begins at 1:10" in faults(written(tmp_path, "members: {a: {agent: script}\nname: x\n"))[0]
        assert "expected a single document" in faults(written(tmp_path, "name: a\n---\nname: b\n"))[0]

    def phase(self, **changes):
        return with_(mindstorm=[{**GOOD["mindstorm"][0], **changes}])

    @pytest.mark.parametrize(
        ("changes", "told"),
        [
            ({"prompt": "anwser"}, "prompt"),
            ({"prompt": {"text": "{{ task.quesion }}"}}, "a vqa task has no 'quesion'"),
            ({"hears": {"label": "nothing"}}, "no phase is labelled 'nothing'"),
            ({"as": " "}, "a label needs printable text"),
            ({"until": "certain"}, "a phase ends by"),
            ({"form": {"text": {"max_tokns": "3"}}}, "max_tokns"),
            ({"form": {"json": "{not json"}}, "Expecting|JSON"),
            ({"form": {"json": "[" * 100_000}}, "too deeply nested"),
            ({"prompt": "a" * 5000}, "no name of a prompt"),
        ],
    )
    def test_each_fault_of_a_phase_says_what_is_wrong(self, changes, told):

        assert any(re.search(told, fault, re.IGNORECASE) for fault in faults(self.phase(**changes)))

    def test_a_name_that_is_a_member_and_a_role_of_others_is_a_conflict(self):
        members = {
            "critic": {"agent": "script", "says": "x"},
            "bob": {"agent": "script", "says": "x", "role": "critic"},
        }
        conflict = with_(members=members, mindstorm=[{"ask": "critic", "prompt": {"text": "Go."}}])
        assert any("is a member and a role" in fault for fault in faults(conflict))

    def test_a_label_that_nobody_asked_can_hear_is_a_fault(self):
        members = {name: {"agent": "script", "says": "x"} for name in ("a", "b", "c")}
        phases = [
            {"ask": "c", "prompt": {"text": "Go."}, "as": "last"},
            {"ask": "a", "prompt": {"text": "Go."}, "as": "ballot", "hears": {"label": "last"}},
        ]
        assert any(
            "can hear" in fault
            for fault in faults(with_(members=members, mindstorm=phases, structure="chain"))
        )

    def test_two_members_of_one_name_are_a_fault(self):
        members = {
            "a": {"agent": "script", "says": "x", "count": "2"},
            "a.1": {"agent": "script", "says": "x"},
        }
        society = with_(members=members, mindstorm=[{"ask": "everyone", "prompt": {"text": "Go."}}])
        assert any("two members have this name" in fault for fault in faults(society))

    def test_two_members_of_one_name_that_looks_like_a_number_are_a_fault(self):
        one = {"agent": "script", "says": "x"}
        members = {"²": {**one, "count": "2"}, "².1": one}
        society = with_(members=members, mindstorm=[{"ask": "everyone", "prompt": {"text": "Go."}}])
        assert any("two members have this name" in fault for fault in faults(society))

    def test_a_file_that_is_named_without_its_ending_is_meant(self, tmp_path, monkeypatch):
        written(tmp_path, "name: s\n")
        monkeypatch.chdir(tmp_path)
        with pytest.raises(UsageError, match="called 's'; did you mean the file s.yaml?"):
            nlsom.load("s")
        with pytest.raises(UsageError, match="no society is called"):
            nlsom.load("s" * 5000)

    def test_an_unknown_society_is_told_with_what_was_meant(self):
        with pytest.raises(UsageError, match="did you mean 'vqa-monarchy'"):
            nlsom.load("vqa-monarch")


class TestForms:
    @pytest.mark.parametrize(
        ("form", "kind"),
        [
            ("number", "number"),
            ({"text": {"max_tokens": "40"}}, "text"),
            ({"yes_no": None}, "yes_no"),
            ({"choice": {"options": ["a", "b"]}}, "choice"),
            ({"json": '{"type": "object"}'}, "json"),
            ({"kind": "text", "short": "true"}, "text"),
        ],
    )
    def test_forms_by_name_in_short_and_in_full(self, form, kind):
        society = nlsom.load(with_(mindstorm=[{"ask": "mind", "prompt": {"text": "Go."}, "form": form}]))
        given = society.phases[0].form
        assert (given if isinstance(given, str) else given.kind) == kind


class TestOverrides:
    def test_any_field_can_be_set(self):
        society = nlsom.load(
            GOOD,
            overrides=[
                "limits.tokens=5000",
                "members.mind.count=2",
                "mindstorm.0.prompt.text=Vote now.",
                "structure=ring",
                "verdict={rule: plurality, tie_break: first}",
            ],
        )
        assert society.limits.tokens == 5000
        assert names(society) == ["mind.1", "mind.2"]
        assert society.phases[0].prompt.text == "Vote now."
        assert society.verdict.tie_break == "first"

    def test_one_override_that_is_no_list_is_not_taken_for_its_letters(self):
        with pytest.raises(UsageError, match="give a list"):
            nlsom.load(GOOD, overrides="limits.tokens=5")

    def test_what_an_override_breaks_is_told_with_the_option(self):
        (told,) = faults(GOOD, overrides=["limits.tokens=lots"])
        assert told.startswith("--set limits.tokens=lots: ")
        (told,) = faults(GOOD, overrides=["limits.token=5"])
        assert told.startswith("--set limits.token=5: unknown key")

    @pytest.mark.parametrize("override", ["limits", "name.x.y=1", "mindstorm.9.as=x", "mindstorm.x=1"])
    def test_an_override_that_leads_nowhere_is_told(self, override):
        with pytest.raises(UsageError):
            nlsom.load(GOOD, overrides=[override])

    def test_the_mapping_that_was_given_is_left_as_it_was(self):
        nlsom.load(GOOD, overrides=["name=other"])
        assert GOOD["name"] == "panel"


class TestSeats:
    def load(self, **spec):
        members = {"m": {"agent": "script", "says": "x", **spec}}
        return nlsom.load(with_(members=members, mindstorm=[{"ask": "m", "prompt": {"text": "Go."}}]))

    def test_one_is_called_by_its_name_and_several_are_numbered(self):
        assert names(self.load()) == ["m"]
        assert names(self.load(count="2")) == ["m.1", "m.2"]
        assert names(self.load(personas=["a", "b"], count="2")) == ["m.1", "m.2", "m.3", "m.4"]
        assert [member.persona for member in self.load(personas=["a", "b"]).members] == ["a", "b"]

    def test_members_of_one_entry_share_an_agent(self):
        seats = self.load(count="3").seats
        assert len({id(seat.agent) for seat in seats}) == 1

    def eyes(self, models=None, **spec):
        society = {
            "name": "x",
            "models": {"vlm": {"optional": "true"}},
            "members": {"eyes": {"agent": "vision", "model": "vlm", "role": "expert", **spec}},
            "mindstorm": [{"ask": "expert", "prompt": {"text": "Go."}}],
        }
        return nlsom.load(society, models=models)

    def test_while_a_model_is_not_given_others_sit_there(self):
        instead = [{"agent": "script", "says": "x"}, {"agent": "script", "says": "y", "role": "expert"}]
        with pytest.raises(ConfigError, match="two members have this name"):
            self.eyes(instead=instead)
        society = self.eyes(instead=instead[:1])
        assert [(m.name, m.role) for m in society.members] == [("eyes.script", "expert")]

    def test_a_model_that_is_given_takes_the_seat(self):
        society = self.eyes({"vlm": "http://localhost:1/v1#m"}, instead=[{"agent": "script", "says": "x"}])
        assert names(society) == ["eyes"]

    @pytest.mark.parametrize(
        ("where", "meant"),
        [
            ("127.0.0.1:9", "http://127.0.0.1:9/v1"),
            ("localhost/api#m", "http://localhost/api#m"),
            ("gpu-1.example:8000#qwen", "http://gpu-1.example:8000/v1#qwen"),
        ],
    )
    def test_the_address_of_a_server_without_its_http_is_told(self, where, meant):
        with pytest.raises(UsageError, match="begins with http:// or https://") as caught:
            nlsom.load({**GOOD, "models": {"vlm": {"optional": "true"}}}, models={"vlm": where})
        assert str(caught.value).endswith(f"did you mean --model vlm={meant}?")

    def test_a_model_that_the_society_does_not_know_is_told(self):
        with pytest.raises(UsageError, match="did you mean 'vlm'"):
            self.eyes({"vln": "http://localhost:1/v1"})


def test_scalars_of_json_are_taken_for_json_and_others_stay_text(tmp_path):
    path = written(
        tmp_path,
        """
        name: x
        members: {mind: {agent: script, says: a}}
        mindstorm:
        - ask: mind
          prompt: {text: Go.}
          form:
            json: {type: array, maxItems: 3, uniqueItems: true, items: {enum: [no, 007, 0.5, '"5"', null]}}
        """,
    )
    (phase,) = nlsom.load(path).phases
    assert phase.form.json_schema == {
        "type": "array",
        "maxItems": 3,
        "uniqueItems": True,
        "items": {"enum": ["no", "007", 0.5, "5", None]},
    }


@pytest.mark.parametrize(
    "text", ["NaN", "1e999", "-Infinity", " 5", "[1]", "12:30", "٣", "1_000", "0x10", ""]
)
def test_what_is_no_scalar_of_json_stays_text(text):
    assert as_json([text]) == [text]


@pytest.mark.parametrize(
    ("model", "member"),
    [
        ({"url": "http://127.0.0.1:1/v1", "timeout": "-1"}, {}),
        ({"url": "http://127.0.0.1:1/v1", "retries": "-1"}, {}),
        ({"url": "http://127.0.0.1:1/v1", "thinking": "-1"}, {}),
        ({"url": "http://127.0.0.1:1/v1", "concurrency": "0"}, {}),
        ({"embedded": "smollm2-135m", "threads": "0"}, {}),
        ({"scripted": "1"}, {"temperature": "-0.1"}),
        ({"scripted": "1"}, {"top_p": "1.5"}),
        ({"scripted": "1"}, {"max_tokens": "0"}),
    ],
)
def test_options_that_make_no_sense_are_told_with_their_place(model, member):
    member = {"agent": "chat", "model": "llm", **member}
    where = f"members.mind.{list(member)[-1]}" if len(member) > 2 else f"models.llm.{list(model)[-1]}"
    (fault,) = faults(with_(models={"llm": model}, members={"mind": member}))
    assert fault.startswith(f"{where}: input should be ")


@pytest.mark.parametrize("name", sorted(config.shipped()))
def test_every_shipped_society_keeps_to_the_published_schema(name):
    import jsonschema
    import yaml

    spec = yaml.safe_load(config.shipped()[name].read_text(encoding="utf-8"))
    jsonschema.validate(spec, schema())


@pytest.mark.parametrize(
    "phase",
    [
        {"hears": {"label": "answer"}},
        {"hears": {"label": ["answer", "vote"]}},
        {"form": {"text": {"max_tokens": 40}}},
        {"form": {"json": '{"type": "object"}'}},
        {"form": {"json": {"type": "object"}}},
        {"form": "yes_no"},
    ],
)
def test_the_schema_allows_the_short_ways_to_write(phase):
    import jsonschema

    spec = {**GOOD, "mindstorm": [{**GOOD["mindstorm"][0], **phase}]}
    spec["members"] = {"mind": {"agent": "script"}}
    jsonschema.validate(spec, schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**spec, "mindstrom": []}, schema())


ODD = (
    "",
    "no",
    "1e999",
    "-1",
    "[]",
    "{}",
    "{a: b}",
    "*x",
    "<<: *x",
    "\t",
    '"\\ud800"',
    "{text: '{x'}",
    "\x00",
    "é",
)
_SHIPPED = {name: file.read_text(encoding="utf-8") for name, file in config.shipped().items()}


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_damaged_society_file_is_read_or_told_of_with_places(data):
    lines = data.draw(st.sampled_from(sorted(_SHIPPED.values()))).split("\n")
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        words = list(re.finditer(r"[\w.]+", lines[at]))
        how = data.draw(st.sampled_from(["gone", "twice", "further in", "replaced"]))
        if how == "gone":
            lines[at] = ""
        elif how == "twice":
            lines.insert(at, lines[at])
        elif how == "further in":
            lines[at] = "  " + lines[at]
        elif words:
            word = data.draw(st.sampled_from(words))
            odd = data.draw(st.sampled_from(ODD))
            lines[at] = lines[at][: word.start()] + odd + lines[at][word.end() :]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.yaml"
        path.write_text("\n".join(lines), encoding="utf-8")
        told = ()
        try:
            nlsom.load(path)
        except ConfigError as error:
            told = error.faults
    assert all(re.fullmatch(rf"{re.escape(str(path))}:\d+:\d+", one.where) for one in told)
