import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_readmes_python_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    assert "alp+d" in capsys.readouterr().out


def test_the_readmes_links_lead_somewhere():
    links = re.findall(r"\]\((?!http)([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert links
    assert not [link for link in links if not (README.parent / link).exists()]
