"""The command-line reference, from the commands themselves: what `--help` says, as a page."""

import inspect
import re

import click
from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_id

from surestep.cli.main import main

CODE = re.compile(r"`([^`]+)`|(--[a-z-]+)")


def setup(app):
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Commands(SphinxDirective):
    """One section for every verb, in the order of `surestep --help`."""

    def run(self):
        with click.Context(main, info_name="surestep", **main.context_settings) as ctx:
            verbs = [(name, main.get_command(ctx, name)) for name in main.list_commands(ctx)]
            return [
                *entry(ctx, main, "surestep"),
                *(self.section(ctx, name, verb) for name, verb in verbs),
            ]

    def section(self, ctx, name, verb):
        """Returns the section of a verb, to which `{ref}` leads as `command-VERB`."""
        place = make_id(self.env, self.state.document, "", name)
        made = nodes.section(ids=[place], names=[name])
        known = self.env.domains.standard_domain
        known.note_hyperlink_target(f"command-{name}", self.env.docname, place, name)
        with click.Context(verb, info_name=name, parent=ctx) as own:
            made += [nodes.title(name, name), *entry(own, verb, name)]
        return made


def entry(ctx, command, name):
    """Returns what a command does, how it is called, and its options."""
    usage = f"{ctx.command_path} {' '.join(command.collect_usage_pieces(ctx))}"
    paragraphs = [block(text) for text in re.split(r"\n{2,}", inspect.cleandoc(command.help))]
    return [nodes.literal_block(usage, usage, language="text"), *paragraphs, options(ctx, name)]


def block(text):
    """Returns a paragraph, or what click keeps as it is: lines below a backspace."""
    if text.startswith("\b"):
        kept = text.removeprefix("\b").strip("\n")
        return nodes.literal_block(kept, kept, language="text")
    return nodes.paragraph("", "", *inline(text))


def options(ctx, name):
    """Returns the options and what they mean; each can be linked to."""
    listed = nodes.definition_list(classes=["options"])
    for parameter in ctx.command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if not record or not record[1]:  # an argument: the usage shows it, the text explains it
            continue
        term = nodes.term("", "", nodes.literal(record[0], record[0]))
        term["ids"] = [f"{name}-{parameter.opts[-1].lstrip('-')}"]
        meaning = nodes.definition("", nodes.paragraph("", "", *inline(record[1])))
        listed += nodes.definition_list_item("", term, meaning)
    return listed


def inline(text):
    """Returns a text in which options, and what stands between backticks, are code."""
    parts = CODE.split(" ".join(text.split()))  # text, then code of either kind, and so on
    return [
        nodes.literal(part, part) if number % 3 else nodes.Text(part)
        for number, part in enumerate(parts)
        if part
    ]
