"""Text in photographs: three models of PP-OCRv4 with Python between them, as one pipeline.

    gapless tune docs/examples/ocr.py:OCR

Detection finds lines of text, Python cuts them out, classification says which of them are upside down,
Python turns these, recognition reads them, and Python takes the most likely letters. How many lines a photo
has is known when it has been looked at, but shapes are fixed: there is room for `LINES`, what is missing is
grey, and `count` says how many there are. Needs `pip install rapidocr-onnxruntime`, which holds the models.
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from scipy import ndimage

from gapless.running import CallableLayer, CallableModel, ModelStep, TensorSpec

HEIGHT, WIDTH = 480, 640
LINES = 8
ROWS, COLUMNS = 48, 320
"""Size of a line for recognition; classification looks at its beginning."""

TEXTS = ("gapless", "pipelines", "OCR 2026", "one two three", "NO BUBBLES", "unequal units")

Pixels = NDArray[np.float32]

spec = find_spec("rapidocr_onnxruntime")
if spec is None or spec.origin is None:
    raise ModuleNotFoundError("the models are not installed: pip install rapidocr-onnxruntime")
MODELS = Path(spec.origin).with_name("models")


def photo(seed: int) -> dict[str, NDArray[np.uint8]]:
    """Return a picture of some lines of text, in another order and place for each seed."""
    random = np.random.default_rng(seed)
    image = Image.new("RGB", (WIDTH, HEIGHT), "white")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(size=36)
    for number, text in enumerate(random.permutation(TEXTS)[:5]):
        draw.text((int(random.integers(20, 200)), 30 + 85 * number), str(text), fill="black", font=font)
    return {"photo": np.asarray(image)}


def normalised(photo: NDArray[np.uint8]) -> Pixels:
    """Return what detection takes: (1, 3, height, width), from -1 to 1."""
    return np.ascontiguousarray((photo.astype(np.float32) / 127.5 - 1).transpose(2, 0, 1)[None])


def cut_out(photo: NDArray[np.uint8], likely: Pixels) -> tuple[Pixels, NDArray[np.int32], NDArray[np.int32]]:
    """Return lines (LINES, 3, ROWS, COLUMNS), their boxes (top, bottom, left, right), and their number.

    Borders lie on multiples of 8 pixels: engines differ in the last digits; boxes must not depend on them.
    """
    lines = np.zeros((LINES, 3, ROWS, COLUMNS), dtype=np.float32)
    boxes = np.zeros((LINES, 4), dtype=np.int32)
    labels, _ = ndimage.label(likely[0, 0] > 0.3)
    found = [part for part in ndimage.find_objects(labels) if part[0].stop - part[0].start >= 6]
    for number, (down, right) in enumerate(found[:LINES]):
        top, bottom = max(0, (down.start - 8) // 8 * 8), min(HEIGHT, -(-(down.stop + 8) // 8) * 8)
        left, stop = max(0, (right.start - 8) // 8 * 8), min(WIDTH, -(-(right.stop + 8) // 8) * 8)
        boxes[number] = top, bottom, left, stop
        columns = min(COLUMNS, (stop - left) * ROWS // (bottom - top))
        line = Image.fromarray(photo[top:bottom, left:stop]).resize((columns, ROWS))
        lines[number, :, :, :columns] = normalised(np.asarray(line))[0]
    return lines, boxes, np.array([min(len(found), LINES)], dtype=np.int32)


def beginnings(lines: Pixels) -> Pixels:
    """Return what classification takes: (LINES, 3, ROWS, 192)."""
    return np.ascontiguousarray(lines[:, :, :, :192])


def upright(lines: Pixels, turned: Pixels) -> Pixels:
    """Return the lines, turned round where classification is sure that they are upside down."""
    over = turned[:, 1] > 0.9
    return np.asarray(np.where(over[:, None, None, None], lines[:, :, ::-1, ::-1], lines))


def most_likely(letters: Pixels, count: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the letters of each line by their numbers, without repetitions; 0 is no letter."""
    best: NDArray[np.int32] = letters.argmax(axis=2).astype(np.int32)
    best[:, 1:][best[:, 1:] == best[:, :-1]] = 0
    best[int(count[0]) :] = 0
    return best


OCR = CallableModel(
    name="ocr",
    inputs=(TensorSpec(name="photo", shape=(HEIGHT, WIDTH, 3), dtype="uint8"),),
    layers=(
        CallableLayer(name="pixels", variants={"*": normalised}),
        ModelStep(name="det", model=MODELS / "ch_PP-OCRv4_det_infer.onnx"),
        CallableLayer(
            name="cut", variants={"*": cut_out}, inputs=("photo", "det"), outputs=("lines", "boxes", "count")
        ),
        CallableLayer(name="beginnings", variants={"*": beginnings}, inputs=("lines",)),
        ModelStep(name="cls", model=MODELS / "ch_ppocr_mobile_v2.0_cls_infer.onnx"),
        CallableLayer(name="upright", variants={"*": upright}, inputs=("lines", "cls")),
        ModelStep(name="rec", model=MODELS / "ch_PP-OCRv4_rec_infer.onnx"),
        CallableLayer(name="letters", variants={"*": most_likely}, inputs=("rec", "count")),
    ),
    outputs=("letters", "boxes", "count"),
    sample=photo,
)
