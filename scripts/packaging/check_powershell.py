"""Checks the syntax of PowerShell scripts with tree-sitter, as no package registry has PowerShell:
`check_powershell.py FILE…`."""

import pathlib
import sys

import tree_sitter
import tree_sitter_powershell

parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language()))


def errors(node):
    if node.is_error or node.is_missing:
        yield node
    for child in node.children:
        yield from errors(child)


bad = [
    f"{name}:{node.start_point.row + 1}: syntax error at `{node.text.decode()[:60]}`"
    for name in sys.argv[1:]
    for node in errors(parser.parse(pathlib.Path(name).read_bytes()).root_node)]
if bad:
    sys.exit("\n".join(bad))
