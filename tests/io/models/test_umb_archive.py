"""The archive around a model: forms of headers, damage, and what would fill the memory."""

import io
import json
import lzma
import os
import tarfile
import tracemalloc
from contextlib import contextmanager

import pytest

from support.model_files import BIT, COMPRESSIONS, offsets, umb, write_umb
from support.umb_parts import (
    BRANCHES,
    CHOICES,
    SYSTEM,
    annotation,
    doubles,
    entry,
    file,
    good,
    read,
    spoiled,
    values,
)
from surestep.errors import InvalidModel, SurestepError
from surestep.io import read_mdp

# ---- what the format allows -------------------------------------------------------------------


def test_archives_may_hold_folders_extended_headers_and_names_that_begin_with_a_dot(tmp_path):
    index, files = umb(CHOICES, BRANCHES)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        folder = tarfile.TarInfo("./actions")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, data in {"index.json": json.dumps(index).encode(), **files}.items():
            header = tarfile.TarInfo(f"./{name}")
            header.size, header.mtime = len(data), 1.5  # half a second needs an extended header
            header.pax_headers = {"path": header.name, "size": str(len(data))}  # told twice
            archive.addfile(header, io.BytesIO(data))
    (tmp_path / "m.umb").write_bytes(buffer.getvalue())
    assert read_mdp(tmp_path / "m.umb", 0.5) == read(tmp_path, CHOICES, BRANCHES)


def test_long_names_and_large_sizes_have_forms_of_their_own(tmp_path):
    name = "r" * 90
    more = {
        "index": annotation("rewards", name, ["states"]),
        "files": values("rewards", name, states=doubles(1, 2)),
    }
    folder = tarfile.TarInfo("annotations/rewards/" + "s" * 90)
    folder.type = tarfile.DIRTYPE
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT):
        path = write_umb(tmp_path / "m.umb", *umb(CHOICES, BRANCHES, more=more), form=form)
        path.write_bytes(folder.tobuf(form) + path.read_bytes())
        assert read_mdp(path, 0.5).reward.tolist() == [1.0, 1.0, 1.0, 2.0]
    path = write_umb(path, *umb(CHOICES, BRANCHES, more=more), form=form)
    data = bytearray(path.read_bytes())
    size = int(data[124:135], 8)
    data[124:136] = b"\x80" + size.to_bytes(11, "big")  # in binary, as for files beyond 8 GiB
    data[148:156] = b"%06o\0 " % (sum(data[:148]) + 256 + sum(data[156:512]))
    path.write_bytes(data)
    assert read_mdp(path, 0.5).reward.tolist() == [1.0, 1.0, 1.0, 2.0]


@pytest.mark.parametrize("form", ["gzip", "xz"])
def test_nothing_but_zeros_may_follow_what_is_compressed(tmp_path, form):
    path = write_umb(tmp_path / "m.umb", *umb(CHOICES, BRANCHES), COMPRESSIONS[form])
    data, whole = path.read_bytes(), read_mdp(path, 0.5)
    path.write_bytes(data + bytes(4))
    assert read_mdp(path, 0.5) == whole
    path.write_bytes(data + data)
    with pytest.raises(InvalidModel, match="something follows the compressed data, expected noth"):
        read_mdp(path, 0.5)


# ---- refusals ---------------------------------------------------------------------------------


def header_of(name, *, kind=tarfile.REGTYPE, size=0):
    """A header as somebody might write it, with the checksum that belongs to it."""
    header = tarfile.TarInfo(name)
    header.type, header.linkname = kind, "/etc/passwd"
    block = bytearray(header.tobuf(tarfile.USTAR_FORMAT))
    block[124:136] = size.to_bytes(12, "big", signed=True) if size < 0 else b"%011o\0" % size
    block[148:156] = b"%06o\0 " % (sum(block[:148]) + 256 + sum(block[156:]))
    return bytes(block)


def extended(data, kind=tarfile.XHDTYPE):
    """An extended header, and the data that follow it."""
    return header_of("x", kind=kind, size=len(data)) + data + bytes(-len(data) % 512)


CUT, DAMAGED_PACK = "the compressed data is cut off", "compressed data cannot be unpacked"
MUCH_MEMORY = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 29}]
ARCHIVES = {  # those that take long to make are made in their test
    "an empty file": (b"", "the file is no archive, or damaged or cut off (empty file), expect"),
    "text": (b"2 3 4\n" * 200, "the file is no archive"),
    "gzip of nothing": (COMPRESSIONS["gzip"](b""), "the file is no archive, or damaged or cut off"),
    "gzip that breaks off": (COMPRESSIONS["gzip"](b"x" * 99)[:-1], CUT),
    "gzip that is damaged": (b"\x1f\x8b\x08" + b"?" * 99, DAMAGED_PACK),
    "xz that breaks off": (lzma.compress(b"x" * 99)[:-1], CUT),
    "xz that is damaged": (lzma.compress(b"x" * 99)[:20] + b"?" * 99, DAMAGED_PACK),
    "xz that wants much memory": (
        lambda: lzma.compress(b"x", filters=MUCH_MEMORY),
        f"{DAMAGED_PACK}: Memory usage limit",
    ),
    "a bomb": (
        lambda: lzma.compress(bytes(1 << 25), preset=0),
        "becomes more than 200 times as large, if",
    ),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_what_is_no_archive_is_refused(tmp_path, name):
    data, words = ARCHIVES[name]
    (tmp_path / "m.umb").write_bytes(data() if callable(data) else data)
    with pytest.raises(InvalidModel) as refusal:
        read_mdp(tmp_path / "m.umb", 0.9)
    assert words in str(refusal.value)


MUCH, LARGE = 100 << 20, 12 << 20  # bytes: more than may be unpacked at all, and less
HELD = 80 << 20  # bytes that may be held at a time: less than there is to unpack
REWARDS = "annotations/rewards/r/choices/values.bin"
NAMES = {
    "actions/choices/string-mapping.bin": offsets([1, 1]),
    "actions/choices/strings.bin": bytes(LARGE),
}


def more_labels(index, files):
    index["annotations"].update(annotation("aps", "l", ["states"], BIT)["annotations"])
    files.update(values("aps", "l", states=bytes(LARGE)))


def more_states(index, files):
    del files["state-to-choices.bin"], files["choice-to-branches.bin"]
    index[SYSTEM].update(dict.fromkeys(("#states", "#choices", "#branches"), 10**9))


BOMBS = {  # a change of a good model, which gzip then packs 1,000 to 1
    "much that nobody needs": (
        file("notes.txt", bytes(MUCH)),
        "the file becomes more than 200 times as large, if unpacked; if that is meant, unpack it",
    ),
    "probabilities that are not declared": (
        file("branch-to-probability.bin", bytes(LARGE)),
        f"branch-to-probability.bin has {LARGE} bytes, expected 32 (4 × 8)",
    ),
    "names that are not declared": (
        lambda i, f: f.update(NAMES),
        f"from 0 to 2, expected from 0 to {LARGE}",
    ),
    "rewards that are not declared": (file(REWARDS, bytes(LARGE)), f"{LARGE} bytes, expected 24"),
    "labels of more states than there are": (more_labels, f"has {LARGE} bytes, expected 8 (1 × 8)"),
    "states that only an index claims": (more_states, "has 32 bytes, expected 8000000000"),
    "an index of brackets": (entry([[]] * 700_000, "file-data"), "index.json has 2800"),
    "more files than a model has": (
        lambda i, f: f.update({f"{number}": b"" for number in range(4_200)}),
        "or stands twice in the archive, or after 4096 others",
    ),
}


@contextmanager
def little_held():
    """Fails where much memory is held at a time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < HELD
    finally:
        tracemalloc.stop()


@pytest.mark.one_quick
@pytest.mark.parametrize("name", BOMBS)
def test_what_is_unpacked_is_limited_by_what_is_declared(tmp_path, name):
    change, words = BOMBS[name]
    path = write_umb(tmp_path / "m.umb", *spoiled(change), COMPRESSIONS["gzip"])
    assert path.stat().st_size < 1 << 20
    with little_held(), pytest.raises(InvalidModel) as refusal:
        read_mdp(path, 0.9)
    assert words in str(refusal.value)


def test_zeros_may_follow_an_archive(tmp_path):
    path = write_umb(tmp_path / "m.umb", *good())
    whole = read_mdp(path, 0.9)
    path.write_bytes(COMPRESSIONS["gzip"](path.read_bytes() + bytes(LARGE)))
    with little_held():
        assert read_mdp(path, 0.9) == whole


DAMAGED, MISSING = "or damaged or cut off (", "index.json is missing in the archive"
PLAIN = "is no plain file or folder, or stands twice in the archive"
LONG_NAME = tarfile.GNUTYPE_LONGNAME
OTHER_HEADERS = {  # what stands before a good archive, and how it is refused
    "a link": (header_of(REWARDS, kind=tarfile.SYMTYPE), f"values.bin' {PLAIN}"),
    "a device": (header_of("x", kind=tarfile.CHRTYPE), f"'x' {PLAIN}"),
    "a name of two lines": (header_of("x\ny", kind=tarfile.CHRTYPE), rf"'x\ny' {PLAIN}"),
    "a file with holes": (header_of("x", kind=tarfile.GNUTYPE_SPARSE), f"'x' {PLAIN}"),
    "another name": (extended(b"11 path=ab\n"), MISSING),
    "another size": (extended(b"18 size=999999999\n"), DAMAGED),
    "a size beyond all files": (extended(b"29 size=99999999999999999999\n"), DAMAGED),
    "a size that is none": (extended(b"11 size=-1\n"), "expected"),
    "holes": (extended(b"27 GNU.sparse.realsize=999\n"), "index.json"),
    "records that are cut off": (extended(b"15 path=ab\n"), MISSING),
    "records longer than memory": (extended(b"99999999999999999999 path=ab\n"), DAMAGED),
    "records that are told twice": (extended(b"11 path=ab\n11 path=cd\n"), MISSING),
    "a long name of zeros": (extended(bytes(3), LONG_NAME), MISSING),
    "a long name with more behind it": (extended(b"ab\0c", LONG_NAME), MISSING),
    "a size below nothing": (header_of("x", size=-512), "expected"),
    "a size below nothing, later": (header_of("x") + header_of("y", size=-512), "expected"),
    "an extended header below nothing": (header_of("x", kind=b"x", size=-512), "expected"),
    "a checksum that is wrong": (
        header_of("x") + header_of("y").replace(b"y", b"z", 1),
        "something follows the archive, exp",
    ),
    "an end before the end": (header_of("x") + bytes(512), "something follows the archive, exp"),
}


@pytest.mark.parametrize("form", ["plain", "gzip"])
@pytest.mark.parametrize("name", OTHER_HEADERS)
def test_a_header_that_is_not_understood_is_refused(tmp_path, name, form):
    first, words = OTHER_HEADERS[name]
    path = write_umb(tmp_path / "m.umb", *good())
    path.write_bytes(COMPRESSIONS[form](first + path.read_bytes()))
    with pytest.raises(InvalidModel) as refusal:
        read_mdp(path, 0.9)
    assert words in str(refusal.value)


def test_zeros_in_place_of_a_header_are_not_taken_for_the_end(tmp_path):
    path = write_umb(tmp_path / "m.umb", *good())
    data = path.read_bytes()
    with tarfile.open(path) as archive:
        headers = [member.offset for member in archive]
    assert len(headers) > 5
    for at in headers:
        path.write_bytes(data[:at] + bytes(512) + data[at + 512 :])
        with pytest.raises(InvalidModel, match="something follows the archive, expected nothing"):
            read_mdp(path, 0.9)


def test_a_file_that_stands_twice_in_the_archive_is_refused(tmp_path):
    path = write_umb(tmp_path / "m.umb", *good())
    data = path.read_bytes()
    size = int(data[124:135], 8)  # of the index, which comes first
    path.write_bytes(data[: 512 + size + -size % 512] + data)
    with pytest.raises(InvalidModel, match=r"'index\.json' .* stands twice in the archive"):
        read_mdp(path, 0.9)


@pytest.mark.one_quick
@pytest.mark.parametrize("form", COMPRESSIONS)
def test_an_archive_that_is_cut_off_anywhere_is_refused_or_lacks_nothing(tmp_path, form):
    index, files = umb([1], [[(0, 1.0)]])
    small = {name: files[name] for name in ("branch-to-probability.bin", "state-is-initial.bin")}
    path = write_umb(tmp_path / "m.umb", index, small, COMPRESSIONS[form])
    data, whole = path.read_bytes(), read_mdp(path, 0.9)
    end = len(data.rstrip(b"\0")) if form == "plain" else len(data)
    for size in reversed(range(min(end + 1024, len(data)))):
        os.truncate(path, size)
        try:
            found = read_mdp(path, 0.9)
        except SurestepError:
            continue
        assert found == whole
        assert size >= end  # nothing but padding is missing
