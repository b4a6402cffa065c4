"""Octree kernels as OpenCL functions, equal to those of `octree_cpu` to the last bit.

Sums, sorting and tree building are the parallel algorithms of the GPU kernels of BetterTogether: a radix sort
by digits, scans in blocks, and a radix tree in which each node finds its own range (Karras 2012, section 3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...executor.opencl_functions import OpenClFunction

if TYPE_CHECKING:
    from ...executor.opencl_functions import DeviceArray, OpenClCall

BLOCKS = 256
"""Blocks of a scan, and of a pass of the sort: one work-item goes through each."""

DIGIT_BITS, DIGITS = 8, 256
"""The sort takes so many bits a pass."""

CODE_BITS = 30

_SCAN = """
kernel void fill_uint(global uint *x, uint value) { x[get_global_id(0)] = value; }

kernel void sum_blocks(global const int *x, int count, int block, global int *sums) {
    int item = get_global_id(0), sum = 0;
    for (int i = item * block; i < min(count, (item + 1) * block); i++) sum += x[i];
    sums[item] = sum;
}

kernel void sum_before_blocks(global int *sums, int blocks) {
    int before = 0;
    for (int i = 0; i < blocks; i++) {
        int own = sums[i];
        sums[i] = before;
        before += own;
    }
    sums[blocks] = before;
}

kernel void sum_within_blocks(
    global const int *x, int count, int block, global const int *sums, global int *y
) {
    int item = get_global_id(0), before = sums[item];
    for (int i = item * block; i < min(count, (item + 1) * block); i++) {
        int own = x[i];
        y[i] = before;
        before += own;
    }
}
"""

_MORTON = """
uint spread(uint x) {
    x = (x | (x << 16)) & 0x030000FF;
    x = (x | (x << 8)) & 0x0300F00F;
    x = (x | (x << 4)) & 0x030C30C3;
    return (x | (x << 2)) & 0x09249249;
}

kernel void encode(global const float *points, global uint *codes) {
    int i = get_global_id(0);
    uint cell[3];
    for (int axis = 0; axis < 3; axis++)  /* fmax: not a number becomes 0 */
        cell[axis] = (uint)fmin(fmax(points[3 * i + axis] * 1024.0f, 0.0f), 1023.0f);
    codes[i] = (spread(cell[0]) << 2) | (spread(cell[1]) << 1) | spread(cell[2]);
}
"""

_SORT = (
    _SCAN
    + """
kernel void count_digits(global const uint *x, int count, int block, int shift, global int *table) {
    int item = get_global_id(0), items = get_global_size(0);
    for (int digit = 0; digit < 256; digit++) table[digit * items + item] = 0;
    for (int i = item * block; i < min(count, (item + 1) * block); i++)
        table[((x[i] >> shift) & 255) * items + item]++;
}

kernel void place_digits(
    global const uint *x, int count, int block, int shift, global int *places, global uint *y
) {
    int item = get_global_id(0), items = get_global_size(0);
    for (int i = item * block; i < min(count, (item + 1) * block); i++)
        y[places[((x[i] >> shift) & 255) * items + item]++] = x[i];
}
"""
)

_UNIQUE = (
    _SCAN
    + """
kernel void mark_new(global const uint *x, global int *marks) {
    int i = get_global_id(0);
    marks[i] = i == 0 || x[i] != x[i - 1];
}

kernel void keep_new(
    global const uint *x, global const int *marks, global const int *places,
    global uint *unique, global int *count
) {
    int i = get_global_id(0);
    if (marks[i]) unique[places[i]] = x[i];
    if (i == get_global_size(0) - 1) count[0] = places[i] + marks[i];
}
"""
)

_RADIX_TREE = """
uint differ(global const uint *codes, int count, int i, int j) {
    return j >= 0 && j < count ? codes[i] ^ codes[j] : 1u << 31;
}

uint highest_bit(uint x) { return x ? 1u << (31 - clz(x)) : 0; }

int farthest(global const uint *codes, int count, int i, int step, uint limit) {
    int most = 1, length = 0;
    while (differ(codes, count, i, i + most * step) < limit) most *= 2;
    for (int stride = most / 2; stride > 0; stride /= 2)
        if (differ(codes, count, i, i + (length + stride) * step) < limit) length += stride;
    return length;
}

kernel void clear_tree(global int *left, global int *right, global int *parent, global uchar *prefix) {
    int i = get_global_id(0);
    left[i] = right[i] = parent[i] = -1;
    prefix[i] = 0;
}

kernel void build_tree(
    global const uint *codes, global const int *counts,
    global int *left, global int *right, global int *parent, global uchar *prefix
) {
    int i = get_global_id(0), count = counts[0];
    if (i >= count - 1) return;
    uint ahead = differ(codes, count, i, i + 1), behind = differ(codes, count, i, i - 1);
    int step = ahead < behind ? 1 : -1;
    int end = i + step * farthest(codes, count, i, step, highest_bit(max(ahead, behind)));
    uint differing = codes[i] ^ codes[end];
    int split = i + step * farthest(codes, count, i, step, highest_bit(differing)) + min(step, 0);
    bool inner = min(i, end) != split;
    left[i] = inner ? split : -2 - split;
    if (inner) parent[split] = i;
    inner = max(i, end) != split + 1;
    right[i] = inner ? split + 1 : -3 - split;
    if (inner) parent[split + 1] = i;
    prefix[i] = clz(differing) - 2;
}
"""

_EDGES = """
kernel void count_edges(global const uchar *prefix, global const int *parent, global int *edges) {
    int i = get_global_id(0), deepest = prefix[i] / 3;
    edges[i] = i == 0 ? deepest + 1 : parent[i] == -1 ? 0 : deepest - prefix[parent[i]] / 3;
}
"""

_SUM = (
    _SCAN
    + """
kernel void take_total(global const int *sums, int blocks, global int *total) { total[0] = sums[blocks]; }
"""
)

_OCTREE = """
int deepest(global const int *parent, global const int *edges, global const int *offsets, int node) {
    int owner = node;
    for (int step = 0; step < 2; step++) if (edges[owner] <= 0) owner = max(parent[owner], 0);
    return offsets[owner] + edges[owner] - 1;
}

int octant(uint code, int level) { return (code >> (30 - 3 * level)) & 7; }

kernel void clear_octree(global int *children, global uint *corner, global uchar *level) {
    int i = get_global_id(0);
    for (int o = 0; o < 8; o++) children[8 * i + o] = -1;
    corner[i] = 0xFFFFFFFF;
    level[i] = 0;
}

kernel void build_nodes(
    global const uint *codes, global const int *parent, global const uchar *prefix,
    global const int *edges, global const int *offsets,
    global int *children, global uint *corner, global uchar *level
) {
    int i = get_global_id(0);
    int above = deepest(parent, edges, offsets, max(parent[i], 0));
    for (int number = 0; number < edges[i]; number++) {
        int own = offsets[i] + number, down = prefix[i] / 3 - edges[i] + 1 + number, shift = 30 - 3 * down;
        level[own] = down;
        corner[own] = (codes[i] >> shift) << shift;
        if (own > 0) children[8 * above + octant(corner[own], down)] = own;
        above = own;
    }
}

kernel void hang_leaves(
    global const uint *codes, global const int *counts, global const int *left, global const int *right,
    global const int *parent, global const int *edges, global const int *offsets,
    global const uchar *level, global int *children
) {
    int i = get_global_id(0);
    if (counts[0] == 1 && i == 0) children[octant(codes[0], level[0] + 1)] = -2;
    int sides[2] = {left[i], right[i]}, above = deepest(parent, edges, offsets, i);
    for (int side = 0; side < 2; side++)
        if (sides[side] <= -2)
            children[8 * above + octant(codes[-2 - sides[side]], level[above] + 1)] = sides[side];
}
"""


def _encode(call: OpenClCall) -> None:
    (points,), (codes,) = call.inputs, call.outputs
    call.launch("encode", codes.size, points, codes)


def _sort(call: OpenClCall) -> None:
    (codes,), (ordered,) = call.inputs, call.outputs
    other = call.scratch("other", codes.shape, codes.dtype)
    table, block = call.scratch("table", (DIGITS * BLOCKS,), "int32"), _block(codes)
    places = call.scratch("places", table.shape, "int32")
    source = codes
    for number, shift in enumerate(range(0, CODE_BITS, DIGIT_BITS)):  # the last of four ends in `ordered`
        target = (other, ordered)[number % 2]
        call.launch("count_digits", BLOCKS, source, codes.size, block, shift, table)
        _scan(call, table, places)
        call.launch("place_digits", BLOCKS, source, codes.size, block, shift, places, target)
        source = target


def _drop_duplicates(call: OpenClCall) -> None:
    (ordered,), (unique, count) = call.inputs, call.outputs
    marks, places = (call.scratch(name, ordered.shape, "int32") for name in ("marks", "places"))
    call.launch("fill_uint", unique.size, unique, -1)
    call.launch("mark_new", ordered.size, ordered, marks)
    _scan(call, marks, places)
    call.launch("keep_new", ordered.size, ordered, marks, places, unique, count)


def _build_radix_tree(call: OpenClCall) -> None:
    call.launch("clear_tree", call.inputs[0].size, *call.outputs)
    call.launch("build_tree", call.inputs[0].size, *call.inputs, *call.outputs)


def _count_edges(call: OpenClCall) -> None:
    call.launch("count_edges", call.outputs[0].size, *call.inputs, *call.outputs)


def _sum_before(call: OpenClCall) -> None:
    (edges,), (offsets, nodes) = call.inputs, call.outputs
    call.launch("take_total", 1, _scan(call, edges, offsets), BLOCKS, nodes)


def _build_octree(call: OpenClCall) -> None:
    unique, count, left, right, parent, prefix, edges, offsets, _ = call.inputs
    children, corner, level = call.outputs
    call.launch("clear_octree", corner.size, children, corner, level)
    call.launch("build_nodes", edges.size, unique, parent, prefix, edges, offsets, children, corner, level)
    call.launch(
        "hang_leaves", edges.size, unique, count, left, right, parent, edges, offsets, level, children
    )


def _scan(call: OpenClCall, values: DeviceArray, before: DeviceArray) -> DeviceArray:
    """Enqueue the sums of what stands before each number; return an array that ends with that of all."""
    sums, block = call.scratch("sums", (BLOCKS + 1,), "int32"), _block(values)
    call.launch("sum_blocks", BLOCKS, values, values.size, block, sums)
    call.launch("sum_before_blocks", 1, sums, BLOCKS)
    call.launch("sum_within_blocks", BLOCKS, values, values.size, block, sums, before)
    return sums


def _block(values: DeviceArray) -> int:
    return -(-values.size // BLOCKS)


encode = OpenClFunction(source=_MORTON, enqueue=_encode)
sort = OpenClFunction(source=_SORT, enqueue=_sort)
drop_duplicates = OpenClFunction(source=_UNIQUE, enqueue=_drop_duplicates)
build_radix_tree = OpenClFunction(source=_RADIX_TREE, enqueue=_build_radix_tree)
count_edges = OpenClFunction(source=_EDGES, enqueue=_count_edges)
sum_before = OpenClFunction(source=_SUM, enqueue=_sum_before)
build_octree = OpenClFunction(source=_OCTREE, enqueue=_build_octree)
