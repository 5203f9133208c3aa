"""Configuration of Sphinx."""

import re
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

sys.path.insert(0, str(Path(__file__).parent))
from pictures import make_pictures

project = "missratio"
author = "the missratio developers"
copyright = f"2026, {author}"
release = installed_version("missratio")
version = ".".join(release.split(".")[:2])

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]

exclude_patterns = ["_build", "**sg_execution_times.rst"]
templates_path = ["_templates"]
default_role = "py:obj"
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# -- API ---------------------------------------------------------------------------

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False


def skip_member(app, what, name, obj, skip, options):
    """Leave out what scikit-learn documents, such as get_params, and what str has."""
    if name != "__init__" and getattr(str, name, None) is obj:
        return True  # what an enumeration of words has from str
    defined_in = getattr(obj, "__module__", None) or ""
    return True if defined_in.startswith("sklearn.") else None


# -- Formulas ----------------------------------------------------------------------

# As MathML, which browsers show by themselves: no script has to be loaded from a
# network. A formula that can't be converted stops the build.
html_math_renderer = "mathml"


def mathml(formula, **options):
    """MathML whose hats, tildes and bars are as large as TeX's."""
    accented = '<mover accent="true">'
    return tex2mathml(formula, **options).replace("<mover>", accented)


def visit_inline_formula(translator, node):
    translator.body.append(mathml(node.astext()))
    raise SkipNode


def visit_displayed_formula(translator, node):
    formula = mathml(node.astext(), as_block=True)
    translator.body.append(f'<div class="formula">{formula}</div>')
    raise SkipNode


EXAMPLE_FIGURE = re.compile(r'<img [^>]*class = "sphx-glr-single-img"/>')
CONSOLE = re.compile(r'<div class="highlight-console.*?</pre>', re.DOTALL)
OPTION = re.compile(r"(?<=[\s>])--[a-z][a-z-]*")
BACK_LINK = re.compile(
    r'(?P<to>viewcode-back" href="[^"#]*generated/(?P<page>[\w.]+)\.html)'
    r'#(?P<name>[^"]+)'
)


def _right_anchor(link):
    """A link from sources to the API by the name that the page has for an object."""
    own = link["page"].rpartition(".")[2]
    return f"{link['to']}#{link['page']}{link['name'].partition(f'.{own}')[2]}"


def finish_page(app, page, template, context, doctree):
    """Box examples' figures, keep commands' options whole, mend links from sources."""
    if "body" not in context:
        return
    whole = r'<span class="option">\g<0></span>'
    body = EXAMPLE_FIGURE.sub(
        r'<div class="figure-scroll">\g<0></div>', context["body"]
    )
    body = CONSOLE.sub(lambda block: OPTION.sub(whole, block[0]), body)
    context["body"] = BACK_LINK.sub(_right_anchor, body)


def setup(app):
    app.connect("builder-inited", make_pictures)
    app.connect("html-page-context", finish_page)
    app.connect("autodoc-skip-member", skip_member)
    app.add_html_math_renderer(
        "mathml", (visit_inline_formula, None), (visit_displayed_formula, None)
    )


# -- Examples ----------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("missratio",),
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "show_memory": False,
    "thumbnail_size": (720, 360),
    "copyfile_regex": r".*\.csv",
    "capture_repr": (),  # what is printed, and not what the last line returns
}

# Prompts and printed results stay behind when an example is copied.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# -- Pages -------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "missratio"
html_static_path = ["_static"]
html_css_files = ["missratio.css"]
html_context = {"default_mode": "auto"}
# Every page lists all pages, in the four parts of the front page.
html_sidebars = {"**": ["all-pages"]}
html_theme_options = {
    "navbar_center": [],
    "navbar_end": ["theme-switcher"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
}
