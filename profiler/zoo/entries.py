"""What is known about each of the built-in networks, apart from who builds it (`catalog._builders`)."""

from __future__ import annotations

from dataclasses import dataclass

from ...executor.model import TensorSpec

_TORCHVISION = "torchvision, weights IMAGENET1K_V1 (pytorch.org/vision/stable/models.html)"

_TIMM = "timm (huggingface.co/timm/{})"

_LITE = (
    "parameters: timm; work: our count of convolutions and products (github.com/tensorflow/tpu, "
    "models/official/efficientnet/lite, has 631 M, 899 M, 1.44 G with all operators)"
)

_BLOCK = 6 + 2
"""Matrix products of a block of an encoder: six of all tokens with weights, two of attention."""


def _encoder_macs(blocks: int, width: int, words: int) -> int:
    """Return the work of the products of an encoder: 12 w^2 t of the six, and 2 w t^2 of attention."""
    return blocks * (12 * width**2 * words + 2 * width * words**2)


def _image(size: int) -> tuple[TensorSpec, ...]:
    return (TensorSpec(name="image", shape=(1, 3, size, size)),)


def _words(length: int) -> tuple[TensorSpec, ...]:
    return tuple(
        TensorSpec(name=name, shape=(1, length), dtype="int64") for name in ("input_ids", "token_type_ids")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooEntry:
    """One built-in network."""

    name: str
    parameters: int
    """Number of trained weights in the literature; running means and variances are not counted."""
    macs: int  # multiplications with addition of one run in the literature, as far as it is printed there
    convolutions: int
    products: int  # number of its matrix products: fully connected operators, and two for each attention
    source: str = _TORCHVISION  # where parameters and work stand
    inputs: tuple[TensorSpec, ...]
    """Its inputs; shapes are fixed, one image or one text at a time."""
    in_parts: bool = False
    """Whether it is too large for one model file on a usual machine: it is planned from its table, over
    devices that hold parts of it (`tables.table_of`)."""


_PHOTO = _image(224)

_COUNTS = (
    ("alexnet", 61_100_840, 710_000_000, 5, 3, _PHOTO),
    ("arcface-mobilenet", 1_003_136, 221_000_000, 50, 0, _image(112)),
    ("arcface-resnet50", 43_590_000, 6_330_000_000, 53, 1, _image(112)),
    ("bert", 109_482_240, 22_500_000_000 // 2, 0, 12 * _BLOCK + 1, _words(128)),
    ("bert-large", 335_141_888, _encoder_macs(24, 1024, 512), 0, 24 * _BLOCK + 1, _words(512)),
    ("bert-small", 28_763_648, _encoder_macs(4, 512, 128), 0, 4 * _BLOCK + 1, _words(128)),
    ("deit-small", 22_050_664, 4_600_000_000, 1, 12 * _BLOCK + 1, _PHOTO),
    ("deit-tiny", 5_717_416, 1_260_000_000, 1, 12 * _BLOCK + 1, _PHOTO),
    ("efficientdet-lite0", 3_240_000, 973_589_696, 182, 0, _image(320)),
    ("efficientnet-lite1", 5_416_680, 600_185_232, 64, 1, _image(240)),
    ("efficientnet-lite2", 6_092_072, 859_736_272, 64, 1, _image(260)),
    ("efficientnet-lite3", 8_197_096, 1_383_321_872, 73, 1, _image(280)),
    ("fsrnet", 8_500_742, 10_753_671_168, 93, 0, _image(128)),
    ("googlenet", 6_624_904, 1_500_000_000, 57, 1, _PHOTO),
    ("inceptionv3", 23_800_000, 5_700_000_000, 94, 1, _image(299)),
    ("inceptionv4", 42_700_000, 12_300_000_000, 149, 1, _image(299)),
    ("lstm-attention", 12_817_664, 654_311_424, 0, 4 * _BLOCK + 1, _words(128)),
    ("mobilenetv1", 4_200_000, 569_000_000, 27, 1, _PHOTO),
    ("mobilenetv2", 3_504_872, 300_000_000, 52, 1, _PHOTO),
    ("mobilenetv3-large", 5_483_032, 220_000_000, 62, 2, _PHOTO),
    ("nasnet-large", 88_753_150, 23_800_000_000, 488, 1, _image(331)),
    ("nasnet-single", 2_480_930, 229_148_352, 158, 1, _PHOTO),
    ("resnet18", 11_689_512, 1_810_000_000, 20, 1, _PHOTO),
    ("resnet34", 21_797_672, 3_660_000_000, 36, 1, _PHOTO),
    ("resnet50", 25_557_032, 4_090_000_000, 53, 1, _PHOTO),
    ("retinaface", 426_608, 981_145_600, 56, 0, _image(640)),
    ("squeezenet", 1_235_496, 350_000_000, 26, 0, _PHOTO),
    ("two-tower", 13_722_368, 736_095_360, 52, 4 * _BLOCK + 3, (*_image(224), *_words(128))),
    ("vgg16", 138_357_544, 15_470_000_000, 13, 3, _PHOTO),
    ("vit", 86_567_656, 17_560_000_000, 1, 12 * _BLOCK + 1, _PHOTO),
    ("vit-huge", 632_045_800, 167_290_000_000, 1, 32 * _BLOCK + 1, _PHOTO),
    ("vit-large", 304_326_632, 61_550_000_000, 1, 24 * _BLOCK + 1, _PHOTO),
    ("yolov2", 50_962_889, 29_475_000_000 // 2, 23, 0, _image(416)),
    ("yolov4", 64_363_101, 60_137_000_000 // 2, 110, 0, _image(416)),
)
"""Name, parameters, MACs, convolutions, matrix products, inputs: see `ZooEntry`."""

_IN_PARTS = ("bert-large", "vit-huge", "vit-large")

_SOURCES = {
    "arcface-mobilenet": "MobileFaceNet without its classifier: Chen et al. 2018 (arXiv 1804.07573); "
    "parameters: our count, 0.99 M there (the slopes of PReLU are 7,552)",
    "arcface-resnet50": "r50 of insightface (github.com/deepinsight/insightface, model zoo and "
    "arcface_torch)",
    "bert": "parameters: github.com/google-research/bert, issue 1225; work: 22.5 G operations, two a "
    "MAC, with those of attention: Jiao et al. 2019, TinyBERT (arXiv 1909.10351), table 1",
    "bert-large": "parameters: bert-large-uncased (huggingface.co/google-bert); work: our count, 12 w^2"
    " t of the six products and 2 w t^2 of attention in each of 24 blocks, w = 1024 and t = 512 words",
    "bert-small": "parameters: google/bert_uncased_L-4_H-512_A-8 (huggingface.co); work: our count, as "
    "for bert-large, with w = 512 and t = 128 words in each of 4 blocks",
    "deit-small": _TIMM.format("deit_small_patch16_224.fb_in1k"),
    "deit-tiny": _TIMM.format("deit_tiny_patch16_224.fb_in1k"),
    "efficientdet-lite0": "parameters: 3.2 M (github.com/google/automl, efficientdet) and 3.24 M (timm "
    "effdet); work: our count, boxes and classes of all anchors, without the choice among them",
    "efficientnet-lite1": _LITE,
    "efficientnet-lite2": _LITE,
    "efficientnet-lite3": _LITE,
    "fsrnet": "our count: the form of Chen et al. 2018 (arXiv 1711.10703) with the stride of 4 that "
    "Band names; no paper prints its size",
    "inceptionv3": _TIMM.format("inception_v3.tv_in1k"),
    "inceptionv4": _TIMM.format("inception_v4.tf_in1k"),
    "lstm-attention": "our count: blocks of BERT-mini beside four bidirectional LSTM, joined as the "
    "columns of Chen et al. 2018 (arXiv 1804.09849); nobody has published it",
    "mobilenetv1": "Howard et al. 2017, MobileNets (arXiv 1704.04861), table 4",
    "nasnet-large": "Zoph et al. 2018 (arXiv 1707.07012), table 2, NASNet-A (6 @ 4032); parameters: Keras",
    "nasnet-single": "our count: NASNet-A with one normal cell in a row and the filters of the mobile "
    "network; nobody has published it",
    "retinaface": "our count; its file has 1.7 MB (github.com/biubug6/Pytorch_Retinaface, "
    "mobilenet0.25), which is trained on patches of 640 x 640",
    "two-tower": "our count: MobileNetV2 for an image and BERT-mini for a text, compared as in CLIP "
    "(Radford et al. 2021, arXiv 2103.00020); nobody has published it",
    "vit-huge": "torchvision, weights IMAGENET1K_SWAG_LINEAR_V1 of vit_h_14 "
    "(pytorch.org/vision/stable/models.html)",
    "yolov2": "darknet, yolov2.cfg at 416 x 416: the numbers of yolov2.weights without its header and "
    "running statistics; 29.475 BFLOPs, two a MAC",
    "yolov4": "darknet, yolov4.cfg at 416 x 416: the numbers of yolov4.weights without its header and "
    "running statistics; 60.137 BFLOPs, two a MAC",
}
"""Where the numbers of a network stand; of others, torchvision has them."""

ENTRIES = {
    name: ZooEntry(
        name=name,
        parameters=parameters,
        macs=macs,
        convolutions=convolutions,
        products=products,
        source=_SOURCES.get(name, _TORCHVISION),
        inputs=inputs,
        in_parts=name in _IN_PARTS,
    )
    for name, parameters, macs, convolutions, products, inputs in _COUNTS
}
