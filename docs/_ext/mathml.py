"""Equations as MathML, which browsers show without a script."""

from __future__ import annotations

from html import escape
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger
from sphinx.writers.html5 import HTML5Translator

_LOG = getLogger(__name__)

_KNOWN_AS = {"{aligned}": "{align*}", r"\lvert": r"\left|", r"\rvert": r"\right|"}
"""What latex2mathml knows by another name, or shows better under it."""

_NAMESPACE = "http://www.w3.org/1998/Math/MathML"
_WITH_LIMITS = {"min", "max"}


def mathml(latex: str, *, display: str, where: nodes.Node) -> str:
    """Return an equation as MathML.

    Parameters
    ----------
    latex
        The equation, without dollar signs.
    display
        "inline" or "block".
    where
        Its node, for the warning about what cannot be converted.
    """
    for name, known in _KNOWN_AS.items():
        latex = latex.replace(name, known)
    try:
        found: str = convert(latex, display=display)
    except Exception as error:
        _LOG.warning("equation %r cannot be converted: %s", latex, error, location=where)
        return f"<code>{escape(latex)}</code>"
    if "<mi>\\" in found or "<mi>&</mi>" in found:
        _LOG.warning("equation %r holds a command that is not known", latex, location=where)
    return _limits_below(found) if display == "block" else found


def _limits_below(equation: str) -> str:
    """Put what min and max range over below them, as in a displayed equation."""
    ElementTree.register_namespace("", _NAMESPACE)
    root = ElementTree.fromstring(equation)
    for node in root.iter(f"{{{_NAMESPACE}}}msub"):
        if node[0].text in _WITH_LIMITS:
            node.tag = f"{{{_NAMESPACE}}}munder"
    return ElementTree.tostring(root, encoding="unicode")


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(mathml(node.astext(), display="inline", where=node))
    raise nodes.SkipNode


def _block(translator: HTML5Translator, node: nodes.math_block) -> None:
    number = f'<span class="eqno">({node["number"]})</span>' if node.get("number") else ""
    translator.body.append(translator.starttag(node, "div", CLASS="math notranslate"))
    translator.body.append(f"{number}{mathml(node.astext(), display='block', where=node)}</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Offer "mathml" as a way to show equations."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
