"""The archive around a model: forms of headers, damage, and what would fill the memory."""

import io
import json
import lzma
import os
import tarfile
import tracemalloc

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
from surestep.io.models.umb_archive import PIECE

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


def test_what_follows_is_seen_wherever_the_compressed_data_ends(tmp_path):
    path = write_umb(tmp_path / "m.umb", *umb(CHOICES, BRANCHES), COMPRESSIONS["gzip"])
    data, whole = path.read_bytes(), read_mdp(path, 0.5)
    name = b"x" * (PIECE - len(data) - 1) + b"\0"  # so that a piece ends with the data
    path.write_bytes(data[:3] + b"\x08" + data[4:10] + name + data[10:])
    assert path.stat().st_size == PIECE
    assert read_mdp(path, 0.5) == whole
    with path.open("ab") as packed:
        packed.write(b"more")
    with pytest.raises(InvalidModel, match="something follows the compressed data, expected noth"):
        read_mdp(path, 0.5)


# ---- refusals ---------------------------------------------------------------------------------


ARCHIVES = {
    "an empty file": (b"", "the file is no archive, or damaged or cut off before byte 512, expect"),
    "text": (b"2 3 4\n" * 200, "the file is no archive"),
    "gzip of nothing": (COMPRESSIONS["gzip"](b""), "the file is no archive, or damaged or cut off"),
    "gzip that breaks off": (
        COMPRESSIONS["gzip"](b"x" * 99)[:-1],
        "the compressed data is cut off",
    ),
    "gzip that is damaged": (b"\x1f\x8b\x08" + b"?" * 99, "compressed data cannot be unpacked"),
    "xz that breaks off": (lzma.compress(b"x" * 99)[:-1], "the compressed data is cut off"),
    "xz that is damaged": (
        lzma.compress(b"x" * 99)[:20] + b"?" * 99,
        "compressed data cannot be unpacked",
    ),
    "xz that wants much memory": (
        lzma.compress(b"x", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 29}]),
        "compressed data cannot be unpacked: Memory usage limit",
    ),
    "a bomb": (
        lzma.compress(bytes(1 << 25), preset=0),
        "becomes more than 200 times as large, if unpacked",
    ),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_what_is_no_archive_is_refused(tmp_path, name):
    data, words = ARCHIVES[name]
    (tmp_path / "m.umb").write_bytes(data)
    with pytest.raises(InvalidModel) as refusal:
        read_mdp(tmp_path / "m.umb", 0.9)
    assert words in str(refusal.value)


MUCH, LARGE = 100 << 20, 12 << 20  # bytes: more than may be unpacked at all, and less
HELD = 11 << 20  # bytes that may be held at a time: a piece unpacked, the list of files, the index
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
        lambda i, f: f.update(
            {
                "actions/choices/string-mapping.bin": offsets([1, 1]),
                "actions/choices/strings.bin": bytes(LARGE),
            }
        ),
        f"string-mapping.bin runs from 0 to 2, expected from 0 to {LARGE}",
    ),
    "rewards that are not declared": (
        file("annotations/rewards/r/choices/values.bin", bytes(LARGE)),
        f"values.bin has {LARGE} bytes, expected 24 (3 × 8)",
    ),
    "labels of more states than there are": (
        lambda i, f: (
            i["annotations"].update(annotation("aps", "l", ["states"], BIT)["annotations"]),
            f.update(values("aps", "l", states=bytes(LARGE))),
        ),
        f"aps/l/states/values.bin has {LARGE} bytes, expected 8 (1 × 8)",
    ),
    "states that only an index claims": (
        lambda i, f: (
            [f.pop(name) for name in ("state-to-choices.bin", "choice-to-branches.bin")],
            i[SYSTEM].update({"#states": 10**9, "#choices": 10**9, "#branches": 10**9}),
        ),
        "branch-to-probability.bin has 32 bytes, expected 8000000000",
    ),
    "an index of brackets": (entry([[]] * 700_000, "file-data"), "index.json has 2800"),
    "more files than a model has": (
        lambda i, f: f.update({f"{number}": b"" for number in range(4_200)}),
        "stands twice in the archive, or after 4096 others",
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_is_unpacked_is_limited_by_what_is_declared(tmp_path, name):
    change, words = BOMBS[name]
    path = write_umb(tmp_path / "m.umb", *spoiled(change), COMPRESSIONS["gzip"])
    assert path.stat().st_size < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(InvalidModel) as refusal:
            read_mdp(path, 0.9)
        held = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert words in str(refusal.value)
    assert held < HELD


def test_an_extended_header_is_not_unpacked_into_memory(tmp_path):
    path = write_umb(tmp_path / "m.umb", *good())
    much = extended(bytes(LARGE))
    path.write_bytes(COMPRESSIONS["gzip"](much + path.read_bytes()))
    del much
    tracemalloc.start()
    try:
        with pytest.raises(
            InvalidModel, match="headers of a file have more than 8192 bytes, expected a name"
        ):
            read_mdp(path, 0.9)
        assert tracemalloc.get_traced_memory()[1] < HELD
    finally:
        tracemalloc.stop()


def test_zeros_behind_an_archive_are_not_kept(tmp_path):
    path = write_umb(tmp_path / "m.umb", *good())
    whole = read_mdp(path, 0.9)
    path.write_bytes(COMPRESSIONS["gzip"](path.read_bytes() + bytes(LARGE)))
    tracemalloc.start()
    try:
        assert read_mdp(path, 0.9) == whole
        assert tracemalloc.get_traced_memory()[1] < HELD
    finally:
        tracemalloc.stop()


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


REWARDS = "annotations/rewards/r/choices/values.bin"
DAMAGED, TOO_LARGE = "damaged or cut off before byte", "the headers of a file have more than 8192 b"
OTHER_HEADERS = {  # what stands before a good archive, and how it is refused
    "a link": (
        header_of(REWARDS, kind=tarfile.SYMTYPE),
        "values.bin is of type b'2' in the archive, expected plain files and folders",
    ),
    "a device": (header_of("x", kind=tarfile.CHRTYPE), "x is of type b'3' in the archive"),
    "a name of two lines": (header_of("x\ny", kind=tarfile.CHRTYPE), DAMAGED),
    "a file with holes": (
        header_of(REWARDS, kind=tarfile.GNUTYPE_SPARSE),
        "values.bin is of type b'S' in the archive",
    ),
    "another name": (extended(b"11 path=ab\n"), "index.json is missing in the archive"),
    "another size": (extended(b"18 size=999999999\n"), DAMAGED),
    "a size beyond all files": (extended(b"29 size=99999999999999999999\n"), DAMAGED),
    "a size that is none": (extended(b"11 size=-1\n"), DAMAGED),
    "holes": (
        extended(b"27 GNU.sparse.realsize=999\n"),
        "index.json is of type b'0' with holes in the archive, expected plain files and folders",
    ),
    "records that are cut off": (extended(b"15 path=ab\n"), DAMAGED),
    "records longer than memory": (extended(b"99999999999999999999 path=ab\n"), DAMAGED),
    "records without an end": (extended(b"path"), DAMAGED),
    "records that are told twice": (extended(b"11 path=ab\n11 path=cd\n"), DAMAGED),
    "a long name of zeros": (extended(bytes(3), tarfile.GNUTYPE_LONGNAME), DAMAGED),
    "a long name with more behind it": (extended(b"ab\0c", tarfile.GNUTYPE_LONGNAME), DAMAGED),
    "a record for all files": (
        extended(b"13 comment=1\n", tarfile.XGLTYPE),
        "x is of type b'g' in the archive, expected plain files and folders",
    ),
    "an endless extended header": (extended(b"comment=" + b"x" * (1 << 17)), TOO_LARGE),
    "a size below nothing": (header_of("x", size=-512), DAMAGED),
    "a size below nothing, later": (header_of("x") + header_of("y", size=-512), DAMAGED),
    "an extended header below nothing": (
        header_of("x", kind=tarfile.XHDTYPE, size=-512),
        DAMAGED,
    ),
    "a checksum that is wrong": (
        header_of("x") + header_of("y").replace(b"y", b"z", 1),
        "the file is no archive, or damaged or cut off before byte 1024, expected tar, or tar",
    ),
    "an end before the end": (
        header_of("x") + bytes(512),
        "something follows the archive, expected nothing but zeros",
    ),
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
    with pytest.raises(InvalidModel, match=r"index\.json stands twice in the archive"):
        read_mdp(path, 0.9)


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
