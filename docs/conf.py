"""How Sphinx builds the documentation: `make docs`."""

import sys
from importlib.metadata import version as installed
from pathlib import Path

from sphinx.ext.autodoc.mock import MockFinder  # pyright: ignore[reportPrivateImportUsage]

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))
# Large libraries that only the adapters' docstrings would load. `autodoc_mock_imports` loads them all the same, looking
# for the sources of the adapters' base classes.
sys.meta_path.insert(0, MockFinder(["accelerate", "datasets", "ray", "stable_baselines3", "transformers", "trl"]))

project = "forethought"
author = "the forethought developers"
copyright = author
version = release = installed("forethought")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "mathml",
    "docstrings",
    "not_run",
]
exclude_patterns = ["build", "extensions"]

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 4

autodoc_default_options = {"member-order": "bysource"}
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autoclass_content = "class"
autodoc_inherit_docstrings = False
napoleon_google_docstring = True
napoleon_numpy_docstring = False
python_use_unqualified_type_names = True
add_module_names = False

html_theme = "furo"
html_title = "forethought"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_math_renderer = "mathml"
html_theme_options = {"navigation_with_keys": True}
