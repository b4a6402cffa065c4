"""The layers of the small AlexNet as OpenCL functions, equal to those in numpy up to rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...executor.opencl_functions import OpenClFunction

if TYPE_CHECKING:
    from ...executor.opencl_functions import OpenClCall
    from .convolutions import Array, SparseRows

_DENSE = """
kernel void convolve(
    global const float *images, global const float *weights, global const float *biases,
    int channels, int filters, global float *y
) {
    int x = get_global_id(0), row = get_global_id(1), width = get_global_size(0), height = get_global_size(1);
    int filter = get_global_id(2) % filters, image = get_global_id(2) / filters;
    float sum = biases[filter];
    for (int channel = 0; channel < channels; channel++) {
        global const float *map = images + (image * channels + channel) * height * width;
        global const float *window = weights + (filter * channels + channel) * 9;
        for (int down = max(0, 1 - row); down < min(3, height + 1 - row); down++)
            for (int right = max(0, 1 - x); right < min(3, width + 1 - x); right++)
                sum += window[3 * down + right] * map[(row + down - 1) * width + x + right - 1];
    }
    y[(get_global_id(2) * height + row) * width + x] = fmax(sum, 0.0f);
}
"""

_SPARSE = """
kernel void convolve(
    global const float *images, global const float *values, global const int *columns,
    global const int *starts, global const float *biases, int channels, int filters, global float *y
) {
    int x = get_global_id(0), row = get_global_id(1), width = get_global_size(0), height = get_global_size(1);
    int filter = get_global_id(2) % filters, image = get_global_id(2) / filters;
    float sum = biases[filter];
    for (int i = starts[filter]; i < starts[filter + 1]; i++) {
        int channel = columns[i] / 9, place = columns[i] % 9;
        int down = row + place / 3 - 1, right = x + place % 3 - 1;
        if (down >= 0 && down < height && right >= 0 && right < width)
            sum += values[i] * images[((image * channels + channel) * height + down) * width + right];
    }
    y[(get_global_id(2) * height + row) * width + x] = fmax(sum, 0.0f);
}
"""

_POOL = """
kernel void pool(global const float *images, global float *y) {
    int x = get_global_id(0), row = get_global_id(1), width = get_global_size(0), height = get_global_size(1);
    global const float *pixel = images + (get_global_id(2) * height + row) * 4 * width + 2 * x;
    y[(get_global_id(2) * height + row) * width + x] =
        fmax(fmax(pixel[0], pixel[1]), fmax(pixel[2 * width], pixel[2 * width + 1]));
}
"""

_CLASSIFY = """
kernel void weigh(
    global const float *features, global const float *weights, global const float *biases,
    int count, int classes, global float *logits
) {
    int class = get_global_id(0), image = get_global_id(1);
    float sum = biases[class];
    for (int i = 0; i < count; i++) sum += features[image * count + i] * weights[class * count + i];
    logits[image * classes + class] = sum;
}

kernel void normalise(global const float *logits, int classes, global float *y) {
    int image = get_global_id(0);
    global const float *own = logits + image * classes;
    float most = own[0], total = 0.0f;
    for (int i = 1; i < classes; i++) most = fmax(most, own[i]);
    for (int i = 0; i < classes; i++) total += exp(own[i] - most);
    for (int i = 0; i < classes; i++) y[image * classes + i] = exp(own[i] - most) / total;
}
"""


def dense_convolution(weights: Array, biases: Array) -> OpenClFunction:
    """Return a convolution with dense filters: a work-item for each pixel that comes out.

    `weights`, `biases`: float32 (filters, channels, 3, 3) and (filters,).
    """
    constants = {"weights": weights, "biases": biases}
    return OpenClFunction(source=_DENSE, enqueue=_convolve, constants=constants)


def sparse_convolution(rows: SparseRows, biases: Array) -> OpenClFunction:
    """Return a convolution with filters as compressed sparse rows: a work-item for each pixel."""
    constants = {"values": rows.values, "columns": rows.columns, "starts": rows.starts, "biases": biases}
    return OpenClFunction(source=_SPARSE, enqueue=_convolve, constants=constants)


def classification(weights: Array, biases: Array) -> OpenClFunction:
    """Return a fully connected layer with softmax; weights (classes, features), biases (classes,)."""
    constants = {"weights": weights, "biases": biases}
    return OpenClFunction(source=_CLASSIFY, enqueue=_classify, constants=constants)


def _convolve(call: OpenClCall) -> None:
    (images,), (found,) = call.inputs, call.outputs
    count, filters, height, width = found.shape
    size = (width, height, count * filters)
    call.launch("convolve", size, images, *call.constants.values(), images.shape[1], filters, found)


def _pool(call: OpenClCall) -> None:
    (images,), (found,) = call.inputs, call.outputs
    count, channels, height, width = found.shape
    call.launch("pool", (width, height, count * channels), images, found)


def _classify(call: OpenClCall) -> None:
    (features,), (found,) = call.inputs, call.outputs
    count, classes = found.shape
    logits = call.scratch("logits", found.shape, "float32")
    length = features.size // count
    call.launch("weigh", (classes, count), features, *call.constants.values(), length, classes, logits)
    call.launch("normalise", count, logits, classes, found)


max_pool = OpenClFunction(source=_POOL, enqueue=_pool)
