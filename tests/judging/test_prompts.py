import pytest

from forethought.judging.prompts import LISTS, Prompts, default_template, read_text

GOALS = "{% for g in source_goals %}{{ g.id }}={{ g.goal }};{% endfor %}"
TARGETS = "{% for g in target_goals %}{{ g.id }}={{ g.goal }};{% endfor %}"


def prompts(template=GOALS + "|" + TARGETS, **texts):
    texts = {"environment": "env", "goal_suite": "suite", "learner": "who", "domain_name": "Maze"} | texts
    return Prompts("learning_connectivity", template, **texts)


def test_goals_stand_in_the_order_given():
    assert prompts().render([("g1", "b"), ("g0", "a")], [("g2", "c")]) == "g1=b;g0=a;|g2=c;"


@pytest.mark.parametrize("kind", LISTS)
def test_the_shipped_templates_show_contexts_and_goals(kind):
    rendered = Prompts(kind, default_template(kind), "<env>", "<suite>", "<who>", "Maze").render(
        [("g0", "Walk.")], [("g1", "Läufe & springe <weit>.")]
    )
    for part in (
        "<env>",
        "<suite>",
        "<who>",
        "Maze",
        "- id: g0 | goal: Walk.",
        "- id: g1 | goal: Läufe & springe <weit>.",
    ):
        assert rendered.count(part) >= 1
    assert "{" not in rendered


def test_what_looks_like_a_template_in_a_text_is_left_alone():
    made = prompts("{{ environment }}" + GOALS + TARGETS, environment="{{ learner }} {% raw %}")
    assert (
        made.render([("g0", "{{ domain_name }}")], [("g1", "x")]) == "{{ learner }} {% raw %}g0={{ domain_name }};g1=x;"
    )


def test_a_goal_is_one_line():
    assert prompts().render([("g0", "a\n- id: g9 | goal: b\r\n")], []) == "g0=a - id: g9 | goal: b;|"


def test_the_digest_is_that_of_template_and_contexts():
    import hashlib

    assert (
        prompts("ä" + GOALS + TARGETS).digest
        == hashlib.sha256(("ä" + GOALS + TARGETS + "env" + "suite" + "who").encode()).hexdigest()
    )
    assert prompts().digest != prompts(learner="another").digest


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (GOALS, "does not use target_goals"),
        (TARGETS, "does not use source_goals"),
        (GOALS + TARGETS + "{{ reward }}", "asks for reward; allowed are domain_name"),
        ("{% for %}", "cannot be read"),
    ],
)
def test_a_template_that_cannot_serve_is_refused(template, message):
    with pytest.raises(ValueError, match=message):
        prompts(template)


def test_a_template_reaches_nothing_but_its_variables():
    made = prompts(GOALS + TARGETS + "{{ environment.__class__.__mro__ }}")
    with pytest.raises(ValueError, match=r"access to attribute '__class__' .* is unsafe"):
        made.render([], [])


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("{{ target_goals[0].text }}", "no attribute 'text'; a goal has id and goal"),
        ("{{ 1 / 0 }}", "division by zero"),
    ],
)
def test_a_template_that_fails_says_why(part, message):
    with pytest.raises(ValueError, match=f"the learning_connectivity template fails: .*{message}"):
        prompts(GOALS + TARGETS + part).render([("g0", "a")], [("g1", "b")])


def test_an_unknown_kind_is_named():
    with pytest.raises(
        ValueError, match="'both'; allowed are learning_connectivity, feasibility_evidence, interestingness"
    ):
        Prompts("both", "", "", "", "", "")
    with pytest.raises(ValueError, match="'both'"):
        default_template("both")


def test_files_are_utf8(tmp_path):
    (tmp_path / "good").write_bytes("Ünïcödé — 目标\r\n".encode())
    assert read_text(tmp_path / "good") == "Ünïcödé — 目标\r\n"
    (tmp_path / "bad").write_bytes(b"\xff")
    with pytest.raises(ValueError, match="bad: not a text in UTF-8"):
        read_text(tmp_path / "bad")
    with pytest.raises(ValueError, match="none: cannot be read: No such file"):
        read_text(tmp_path / "none")
