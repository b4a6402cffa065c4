"""Types of ONNX operators by what they do."""

from __future__ import annotations

_MOVING = """
Identity Reshape Flatten Squeeze Unsqueeze Transpose Concat Split Slice Gather GatherElements GatherND
Scatter ScatterElements ScatterND Expand Tile Pad Shape Size Constant ConstantOfShape Cast CastLike
DepthToSpace SpaceToDepth Dropout ReverseSequence Compress Trilu EyeLike Range OneHot NonZero
SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength
ConcatFromSequence SplitToSequence Optional OptionalGetElement OptionalHasElement
"""
_ELEMENTWISE = """
Abs Acos Acosh Add And Asin Asinh Atan Atanh BatchNormalization BitShift BitwiseAnd BitwiseNot BitwiseOr
BitwiseXor Ceil Celu Clip Cos Cosh DequantizeLinear Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual
HardSigmoid HardSwish IsInf IsNaN LeakyRelu Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu
Pow QuantizeLinear Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum
Swish Tan Tanh ThresholdedRelu Where Xor
"""
_REDUCING = """
GlobalAveragePool GlobalMaxPool GlobalLpPool ArgMax ArgMin TopK CumSum ReduceMean ReduceSum ReduceMax
ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum ReduceLogSumExp
"""
_RANDOM = "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Multinomial Bernoulli"

MOVING = frozenset(_MOVING.split())
"""They move or describe data and compute nothing."""

ELEMENTWISE = frozenset(_ELEMENTWISE.split())
"""They compute each element of the output from a few elements of the inputs."""

REDUCING = frozenset(_REDUCING.split())
"""They look at every element of their input and make few of them."""

RANDOM = frozenset(_RANDOM.split())
"""They give other numbers in every run."""
