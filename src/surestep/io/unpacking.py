"""What gzip or xz has compressed, unpacked as it is read and never as a whole."""

from __future__ import annotations

import io
import lzma
import zlib
from typing import IO

from surestep.errors import InvalidModel

GZIP, XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"
PIECE = 1 << 16  # bytes that are read, and at most unpacked, at a time
# Bytes that a compressed byte, and any file, may become. Models grow by a factor of 3 to 50, since
# offsets and successors differ from each other; only a file of little but zeros grows by 1,000.
GROWTH, ALLOWANCE = 200, 1 << 24
XZ_MEMORY = 1 << 28  # bytes; the strongest setting of xz needs a quarter of it


class Unpacked:
    """A file that is unpacked while it is read; what is skipped is unpacked and dropped."""

    def __init__(self, file: IO[bytes]) -> None:
        """Begins at the first byte of a file that gzip or xz has made."""
        self.file = file
        self.most = GROWTH * file.seek(0, io.SEEK_END) + ALLOWANCE
        self.restart()

    def restart(self) -> None:
        """Goes back to the first byte."""
        self.file.seek(0)
        xz = self.file.read(len(XZ)) == XZ
        self.file.seek(0)
        self.at = 0
        self.waiting = b""  # compressed bytes that the decoder has given back
        self.decoder = (
            lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY) if xz else zlib.decompressobj(wbits=31)
        )

    def seek(self, position: int) -> int:
        """Goes to a byte of what is unpacked, or to its end; returns where that is."""
        if position < self.at:
            self.restart()
        while self.at < position and self.piece(min(PIECE, position - self.at)):
            pass
        return self.at

    def read(self, size: int) -> bytes:
        """The next bytes, fewer at the end."""
        pieces = []
        while size > 0 and (piece := self.piece(min(PIECE, size))):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def check_rest(self) -> None:
        """Unpacks and drops what is left: it must be whole, and the last thing in the file."""
        while self.piece(PIECE):
            pass
        rest = self.decoder.unused_data
        while rest:
            if rest.strip(b"\0"):
                raise InvalidModel(
                    "something follows the compressed data, expected nothing but zeros"
                )
            rest = self.file.read(PIECE)

    def piece(self, most: int) -> bytes:
        """Some of the next bytes, `most` at most; none at the end."""
        plain = b""
        while not plain and not self.decoder.eof:
            try:
                plain = self.decoder.decompress(self.waiting, most)
            except (lzma.LZMAError, zlib.error) as problem:
                raise InvalidModel(f"the compressed data cannot be unpacked: {problem}") from None
            self.waiting = getattr(self.decoder, "unconsumed_tail", b"")  # xz keeps it to itself
            if not (plain or self.decoder.eof or self.waiting):
                self.waiting = self.file.read(PIECE)
                if not self.waiting:
                    raise InvalidModel("the compressed data is cut off")
        self.at += len(plain)
        if self.at > self.most:
            raise InvalidModel(
                f"the file becomes more than {GROWTH} times as large, if unpacked; if that is "
                "meant, unpack it first"
            )
        return plain
