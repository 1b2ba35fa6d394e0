"""Encodes small images as PNG, with the standard library alone."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

from diagnostics.facts.array import Array

GAP, BACKGROUND = 4, 128  # pixels between images, and their grey
SMALLEST = 96  # pixels of an image's longer side in a file: smaller ones are enlarged
# By Paul Tol's "bright" and "muted" colours, which colour-blind readers can tell apart; class 0 is black.
PALETTE = (
    (0, 0, 0), (238, 102, 119), (34, 136, 51), (68, 119, 170), (204, 187, 68), (102, 204, 238), (170, 51, 119),
    (187, 187, 187), (221, 204, 119), (17, 119, 51), (136, 204, 238), (153, 153, 51),
)  # fmt: skip


def png(pixels: Array) -> bytes:
    """Encode one image.

    Args:
        pixels: uint8 (height, width, channels), with 1 channel (grey) or 3 (red, green, blue).
    """
    height, width, channels = pixels.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each begins with its filter: none
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">2I5B", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def data_uri(pixels: Array) -> str:
    """Return one image as the source of an ``<img>``."""
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode("ascii")


def coloured(masks: Array) -> Array:
    """Return masks of classes, uint8 (rows, height, width, 1), in colours; classes repeat them."""
    return np.asarray(np.array(PALETTE, np.uint8)[masks[..., 0] % len(PALETTE)])


def side_by_side(images: Array) -> Array:
    """Join images, uint8 (rows, height, width, channels), in one row; small ones are enlarged."""
    factor = max(1, -(-SMALLEST // max(images.shape[1:3])))
    large = images.repeat(factor, axis=1).repeat(factor, axis=2)
    gap = np.full((large.shape[1], GAP, large.shape[3]), BACKGROUND, np.uint8)
    parts = [part for image in large for part in (image, gap)]
    return np.concatenate(parts[:-1], axis=1)


def below_each_other(bands: list[Array]) -> Array:
    """Join bands of images, (height, width, 1 or 3), below each other."""
    width = max(band.shape[1] for band in bands)
    rows = []
    for band in bands:
        rgb = np.repeat(band, 3, axis=2) if band.shape[2] == 1 else band
        filled = np.full((band.shape[0] + GAP, width, 3), BACKGROUND, np.uint8)
        filled[: band.shape[0], : band.shape[1]] = rgb
        rows.append(filled)
    return np.concatenate(rows)[:-GAP]
