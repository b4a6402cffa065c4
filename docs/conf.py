"""How the documentation is built: `python -m sphinx -W --keep-going -b html docs out/docs`.

Nothing is fetched, while it is built or when it is read: equations are MathML, and there is no font,
script or picture from elsewhere.
"""

from __future__ import annotations

import sys
from pathlib import Path

import gapless

sys.path.insert(0, str(Path(__file__).parent))

project = "gapless"
author = "The gapless founders"
copyright = "The gapless founders, Apache-2.0"
version = release = gapless.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "_ext.docstrings",
    "_ext.generated",
    "_ext.mathml",
]
exclude_patterns = ["examples/**"]
nitpicky = False
suppress_warnings = ["ref.python"]  # the name of an attribute may be that of several methods, too
default_role = "code"
smartquotes = False  # two hyphens begin an option

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"gapless {release}"
html_static_path = ["_static"]
html_css_files = ["gapless.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
