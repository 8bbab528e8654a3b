"""The command-line reference, made from the commands' own help."""

import inspect
import re

import click
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from surestep.cli.main import main

CODE = re.compile(r"`([^`]+)`|(--[a-z-]+)")


def setup(app):
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Commands(SphinxDirective):
    """Makes one section for every verb, in the order of `surestep --help`."""

    def run(self):
        with click.Context(main, info_name="surestep", **main.context_settings) as ctx:
            made = entry(ctx)
            for name in main.list_commands(ctx):
                with click.Context(main.get_command(ctx, name), info_name=name, parent=ctx) as own:
                    title = nodes.title(name, name)
                    made.append(nodes.section("", title, *entry(own), ids=[name], names=[name]))
        return made


def entry(ctx):
    """Returns how a command is called, what it does, and its options."""
    usage = f"{ctx.command_path} {' '.join(ctx.command.collect_usage_pieces(ctx))}"
    made = [nodes.literal_block(usage, usage)]
    for text in re.split(r"\n{2,}", inspect.cleandoc(ctx.command.help)):
        if text.startswith("\b"):  # click keeps such lines as they are
            kept = text.removeprefix("\b").strip("\n")
            made.append(nodes.literal_block(kept, kept))
        else:
            made.append(paragraph(text))
    return [*made, options(ctx)]


def options(ctx):
    """Returns the options and their meaning; each can be linked to."""
    listed = nodes.definition_list(classes=["options"])
    for parameter in ctx.command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record and record[1]:  # not an argument: the usage shows it, the text explains it
            place = f"{ctx.info_name}-{parameter.opts[-1].lstrip('-')}"
            term = nodes.term("", "", nodes.literal(record[0], record[0]), ids=[place])
            meaning = nodes.definition("", paragraph(record[1]))
            listed += nodes.definition_list_item("", term, meaning)
    return listed


def paragraph(text):
    """Returns a paragraph in which options, and words between backticks, are code."""
    parts = CODE.split(" ".join(text.split()))  # text, then code of either kind, and so on
    made = nodes.paragraph()
    for number, part in enumerate(parts):
        if part:
            made += nodes.literal(part, part) if number % 3 else nodes.Text(part)
    return made
