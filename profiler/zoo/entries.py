"""What is known about each of the built-in networks, apart from who builds it (`catalog._builders`)."""

from __future__ import annotations

from dataclasses import dataclass

from ...executor.model import TensorSpec

_TORCHVISION = "torchvision, weights IMAGENET1K_V1 (pytorch.org/vision/stable/models.html)"

_TIMM = "timm (huggingface.co/timm/{})"


def _image(size: int) -> tuple[TensorSpec, ...]:
    return (TensorSpec(name="image", shape=(1, 3, size, size)),)


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
    inputs: tuple[TensorSpec, ...] = _image(224)
    """Its inputs; shapes are fixed, one image or one text at a time."""
    in_parts: bool = False
    """Whether it is too large for one model file on a usual machine: it is planned from its table, over
    devices that hold parts of it (`tables.table_of`)."""


def _words(length: int) -> tuple[TensorSpec, ...]:
    return tuple(
        TensorSpec(name=name, shape=(1, length), dtype="int64") for name in ("input_ids", "token_type_ids")
    )


ENTRIES = {
    entry.name: entry
    for entry in (
        ZooEntry(
            name="alexnet",
            parameters=61_100_840,
            macs=710_000_000,
            convolutions=5,
            products=3,
        ),
        ZooEntry(
            name="arcface-mobilenet",
            parameters=1_003_136,
            macs=221_000_000,
            convolutions=50,
            products=0,
            source="MobileFaceNet without its classifier: Chen et al. 2018 (arXiv 1804.07573); parameters: "
            "our count, 0.99 M there (the slopes of PReLU are 7,552)",
            inputs=_image(112),
        ),
        ZooEntry(
            name="arcface-resnet50",
            parameters=43_590_000,
            macs=6_330_000_000,
            convolutions=53,
            products=1,
            source="r50 of insightface (github.com/deepinsight/insightface, model zoo and arcface_torch)",
            inputs=_image(112),
        ),
        ZooEntry(
            name="bert",
            parameters=109_482_240,
            macs=22_500_000_000 // 2,
            convolutions=0,
            products=12 * (6 + 2) + 1,
            source="parameters: github.com/google-research/bert, issue 1225; work: 22.5 G operations, two a "
            "MAC, with those of attention: Jiao et al. 2019, TinyBERT (arXiv 1909.10351), table 1",
            inputs=_words(128),
        ),
        ZooEntry(
            name="bert-large",
            parameters=335_141_888,
            macs=24 * (12 * 1024**2 * 512 + 2 * 1024 * 512**2),
            convolutions=0,
            products=24 * (6 + 2) + 1,
            source="parameters: bert-large-uncased (huggingface.co/google-bert); work: our count, 12 w^2 t "
            "of the six products and 2 w t^2 of attention in each of 24 blocks, w = 1024 and t = 512 words",
            inputs=_words(512),
            in_parts=True,
        ),
        ZooEntry(
            name="bert-small",
            parameters=28_763_648,
            macs=4 * (12 * 512**2 * 128 + 2 * 512 * 128**2),
            convolutions=0,
            products=4 * (6 + 2) + 1,
            source="parameters: google/bert_uncased_L-4_H-512_A-8 (huggingface.co); work: our count, as for "
            "bert-large, with w = 512 and t = 128 words in each of 4 blocks",
            inputs=_words(128),
        ),
        ZooEntry(
            name="deit-small",
            parameters=22_050_664,
            macs=4_600_000_000,
            convolutions=1,
            products=12 * (6 + 2) + 1,
            source=_TIMM.format("deit_small_patch16_224.fb_in1k"),
        ),
        ZooEntry(
            name="deit-tiny",
            parameters=5_717_416,
            macs=1_260_000_000,
            convolutions=1,
            products=12 * (6 + 2) + 1,
            source=_TIMM.format("deit_tiny_patch16_224.fb_in1k"),
        ),
        ZooEntry(
            name="efficientdet-lite0",
            parameters=3_240_000,
            macs=973_589_696,
            convolutions=182,
            products=0,
            source="parameters: 3.2 M (github.com/google/automl, efficientdet) and 3.24 M (timm effdet); "
            "work: our count, boxes and classes of all anchors, without the choice among them",
            inputs=_image(320),
        ),
        *(
            ZooEntry(
                name=f"efficientnet-lite{size}",
                parameters=parameters,
                macs=macs,
                convolutions=convolutions,
                products=1,
                source="parameters: timm; work: our count of convolutions and products (github.com/tensor"
                "flow/tpu, models/official/efficientnet/lite, has 631 M, 899 M, 1.44 G with all operators)",
                inputs=_image(pixels),
            )
            for size, parameters, macs, convolutions, pixels in (
                (1, 5_416_680, 600_185_232, 64, 240),
                (2, 6_092_072, 859_736_272, 64, 260),
                (3, 8_197_096, 1_383_321_872, 73, 280),
            )
        ),
        ZooEntry(
            name="fsrnet",
            parameters=8_500_742,
            macs=10_753_671_168,
            convolutions=93,
            products=0,
            source="our count: the form of Chen et al. 2018 (arXiv 1711.10703) with the stride of 4 that "
            "Band names; no paper prints its size",
            inputs=_image(128),
        ),
        ZooEntry(
            name="googlenet",
            parameters=6_624_904,
            macs=1_500_000_000,
            convolutions=57,
            products=1,
        ),
        ZooEntry(
            name="inceptionv3",
            parameters=23_800_000,
            macs=5_700_000_000,
            convolutions=94,
            products=1,
            source="timm (huggingface.co/timm/inception_v3.tv_in1k)",
            inputs=_image(299),
        ),
        ZooEntry(
            name="inceptionv4",
            parameters=42_700_000,
            macs=12_300_000_000,
            convolutions=149,
            products=1,
            source="timm (huggingface.co/timm/inception_v4.tf_in1k)",
            inputs=_image(299),
        ),
        ZooEntry(
            name="lstm-attention",
            parameters=12_817_664,
            macs=654_311_424,
            convolutions=0,
            products=4 * (6 + 2) + 1,
            source="our count: blocks of BERT-mini beside four bidirectional LSTM, joined as the columns of "
            "Chen et al. 2018 (arXiv 1804.09849); nobody has published it",
            inputs=_words(128),
        ),
        ZooEntry(
            name="mobilenetv1",
            parameters=4_200_000,
            macs=569_000_000,
            convolutions=27,
            products=1,
            source="Howard et al. 2017, MobileNets (arXiv 1704.04861), table 4",
        ),
        ZooEntry(
            name="mobilenetv2",
            parameters=3_504_872,
            macs=300_000_000,
            convolutions=52,
            products=1,
        ),
        ZooEntry(
            name="mobilenetv3-large",
            parameters=5_483_032,
            macs=220_000_000,
            convolutions=62,
            products=2,
        ),
        ZooEntry(
            name="nasnet-large",
            parameters=88_753_150,
            macs=23_800_000_000,
            convolutions=488,
            products=1,
            source="Zoph et al. 2018 (arXiv 1707.07012), table 2, NASNet-A (6 @ 4032); parameters: Keras",
            inputs=_image(331),
        ),
        ZooEntry(
            name="nasnet-single",
            parameters=2_480_930,
            macs=229_148_352,
            convolutions=158,
            products=1,
            source="our count: NASNet-A with one normal cell in a row and the filters of the mobile network; "
            "nobody has published it",
        ),
        ZooEntry(
            name="resnet18",
            parameters=11_689_512,
            macs=1_810_000_000,
            convolutions=20,
            products=1,
        ),
        ZooEntry(
            name="resnet34",
            parameters=21_797_672,
            macs=3_660_000_000,
            convolutions=36,
            products=1,
        ),
        ZooEntry(
            name="resnet50",
            parameters=25_557_032,
            macs=4_090_000_000,
            convolutions=53,
            products=1,
        ),
        ZooEntry(
            name="retinaface",
            parameters=426_608,
            macs=981_145_600,
            convolutions=56,
            products=0,
            source="our count; its file has 1.7 MB (github.com/biubug6/Pytorch_Retinaface, mobilenet0.25), "
            "which is trained on patches of 640 x 640",
            inputs=_image(640),
        ),
        ZooEntry(
            name="squeezenet",
            parameters=1_235_496,
            macs=350_000_000,
            convolutions=26,
            products=0,
        ),
        ZooEntry(
            name="two-tower",
            parameters=13_722_368,
            macs=736_095_360,
            convolutions=52,
            products=4 * (6 + 2) + 3,
            source="our count: MobileNetV2 for an image and BERT-mini for a text, compared as in CLIP "
            "(Radford et al. 2021, arXiv 2103.00020); nobody has published it",
            inputs=(*_image(224), *_words(128)),
        ),
        ZooEntry(
            name="vgg16",
            parameters=138_357_544,
            macs=15_470_000_000,
            convolutions=13,
            products=3,
        ),
        ZooEntry(
            name="vit",
            parameters=86_567_656,
            macs=17_560_000_000,
            convolutions=1,
            products=12 * (6 + 2) + 1,
        ),
        ZooEntry(
            name="vit-huge",
            parameters=632_045_800,
            macs=167_290_000_000,
            convolutions=1,
            products=32 * (6 + 2) + 1,
            source="torchvision, weights IMAGENET1K_SWAG_LINEAR_V1 of vit_h_14 "
            "(pytorch.org/vision/stable/models.html)",
            in_parts=True,
        ),
        ZooEntry(
            name="vit-large",
            parameters=304_326_632,
            macs=61_550_000_000,
            convolutions=1,
            products=24 * (6 + 2) + 1,
            in_parts=True,
        ),
        ZooEntry(
            name="yolov2",
            parameters=50_962_889,
            macs=29_475_000_000 // 2,
            convolutions=23,
            products=0,
            source="darknet, yolov2.cfg at 416 x 416: the numbers of yolov2.weights without its header and "
            "running statistics; 29.475 BFLOPs, two a MAC",
            inputs=_image(416),
        ),
        ZooEntry(
            name="yolov4",
            parameters=64_363_101,
            macs=60_137_000_000 // 2,
            convolutions=110,
            products=0,
            source="darknet, yolov4.cfg at 416 x 416: the numbers of yolov4.weights without its header and "
            "running statistics; 60.137 BFLOPs, two a MAC",
            inputs=_image(416),
        ),
    )
}
