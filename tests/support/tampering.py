"""Model files changed by hand."""

import json
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

import missratio as mr
from missratio.app.modelfile.archive import HEADER, SCHEMA, _digest


def members_of(path):
    with ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, members, *, sealed=True):
    """Write members, with a digest that fits if they are to look untouched."""
    if sealed:
        header = json.loads(members[HEADER])
        rest = {name: body for name, body in members.items() if name != HEADER}
        header["content_sha256"] = _digest(rest)
        members = {**members, HEADER: json.dumps(header).encode()}
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def change_schema(path, change):
    members = members_of(path)
    schema = json.loads(members[SCHEMA])
    change(schema)
    write(path, {**members, SCHEMA: json.dumps(schema).encode()})


def change_header(path, **entries):
    members = members_of(path)
    header = {**json.loads(members[HEADER]), **entries}
    write(path, {**members, HEADER: json.dumps(header).encode()}, sealed=False)


def attribute(schema, *names):
    """The node of an attribute of the model, by its path."""
    node = schema
    for name in names:
        node = node["content"]["content"][name]
    return node


def refused(path, match):
    with pytest.raises(mr.app.modelfile.ModelFileError, match=match):
        mr.load_model(path)
