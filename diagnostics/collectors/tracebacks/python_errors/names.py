"""Names that people meet in a NameError or ImportError, and what brings them."""

from __future__ import annotations

import re

PYTHON_2 = {
    "xrange": "range",
    "unicode": "str",
    "basestring": "str",
    "raw_input": "input",
    "unichr": "chr",
    "long": "int",
    "reduce": "functools.reduce",
    "reload": "importlib.reload",
    "file": "open",
    "cPickle": "pickle",
}
"""Names that Python 2 knew, by what took their place."""

IMPORTS = {
    "torch": "import torch",
    "nn": "from torch import nn",
    "F": "import torch.nn.functional as F",
    "np": "import numpy as np",
    "pd": "import pandas as pd",
    "plt": "import matplotlib.pyplot as plt",
    "tf": "import tensorflow as tf",
    "keras": "import keras, or from tensorflow import keras",
    "K": "from keras import backend as K (Keras 2)",
    "os": "import os",
    "sys": "import sys",
    "math": "import math",
    "random": "import random",
    "json": "import json",
    "time": "import time",
    "tqdm": "from tqdm import tqdm",
    "Variable": "from torch.autograd import Variable, which PyTorch no longer needs",
    "init_empty_weights": "pip install accelerate, and restart the process",
}
"""The usual import, by the name that it gives."""

_PIP = {
    "cv2": "opencv-python",
    "sklearn": "scikit-learn",
    "skimage": "scikit-image",
    "PIL": "pillow",
    "yaml": "pyyaml",
    "torch_scatter": "torch-scatter, built for your PyTorch",
    "torch_sparse": "torch-sparse, built for your PyTorch",
    "pytorch_lightning": "lightning",
    "bs4": "beautifulsoup4",
    "pytorch_transformers": "transformers, the name that this package has had since 2019",
    "pytorch_pretrained_bert": "transformers, the name that this package has had since 2019",
    "mpl_toolkits": "matplotlib",
    "google.protobuf": "protobuf",
    "tensorboardX": "tensorboardX",
    "sentence_transformers": "sentence-transformers",
    "flash_attn": "flash-attn, built for your PyTorch and CUDA",
    "pkg_resources": '"setuptools<81"',
    "distutils": "setuptools: Python 3.12 has no distutils of its own",
    "tensorboard": "tensorboard",
    "torchvision": "torchvision",
    "torchaudio": "torchaudio",
    "timm": "timm",
    "einops": "einops",
    "yacs": "yacs",
    "easydict": "easydict",
    "h5py": "h5py",
    "tqdm": "tqdm",
    "wandb": "wandb",
    "hydra": "hydra-core",
    "mamba_ssm": "mamba-ssm, built for your PyTorch and CUDA",
    "causal_conv1d": "causal-conv1d, built for your PyTorch and CUDA",
    "open_clip": "open_clip_torch",
    "clip": "git+https://github.com/openai/CLIP.git",
    "faiss": "faiss-cpu",
    "stable_baselines3": "stable-baselines3",
    "huggingface_hub": "huggingface_hub",
    "ml_collections": "ml-collections",
    "rouge_score": "rouge-score",
    "Levenshtein": "levenshtein",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "git": "gitpython",
    "serial": "pyserial",
    "OpenGL": "pyopengl",
    "SimpleITK": "SimpleITK",
    "skvideo": "scikit-video",
    "segmentation_models_pytorch": "segmentation-models-pytorch",
    "efficientnet_pytorch": "efficientnet-pytorch",
    "pytorch_msssim": "pytorch-msssim",
    "torch_geometric": "torch-geometric",
    "torch_cluster": "torch-cluster, built for your PyTorch",
    "torch_spline_conv": "torch-spline-conv, built for your PyTorch",
    "spconv": "spconv-cu120, for the CUDA of your PyTorch",
    "MinkowskiEngine": "MinkowskiEngine, from its repository",
    "pytorch3d": "pytorch3d, from its repository, built for your PyTorch",
    "detectron2": "detectron2, from its repository, built for your PyTorch",
    "mmcv": "openmim, then mim install mmcv (mmcv-full before 2.0) for your PyTorch",
    "triton": "triton; on Windows triton-windows. Where a text only says that it is not found, nothing has failed",
    "tf_keras": "tf_keras",
    "keras_contrib": "git+https://github.com/keras-team/keras-contrib.git",
}
_OF_THE_SAME_NAME = re.compile(
    r"accelerate|addict|albumentations|bitsandbytes|datasets|decord|deepspeed|dgl|diffusers|"
    r"editdistance|evaluate|fairseq|fastai|flax|ftfy|fvcore|gensim|gradio|gym|gymnasium|imgaug|"
    r"iopath|jax|jiwer|keras|kornia|librosa|lightning|loguru|lpips|matplotlib|mlflow|mmengine|"
    r"monai|natsort|nibabel|ninja|nltk|numba|numpy|omegaconf|onnx|onnxruntime|opacus|optax|"
    r"optimum|optuna|pandas|peft|prettytable|psutil|pycocotools|pydantic|pydub|ray|requests|"
    r"rich|sacrebleu|safetensors|scipy|seaborn|sentencepiece|shapely|skorch|soundfile|spacy|"
    r"tabulate|tensorflow|termcolor|thop|tiktoken|tokenizers|torch|torchdiffeq|torchmetrics|"
    r"transformers|trl|vllm|xformers"
)
"""Modules that a package of their own name brings."""


def pip_name(module: str) -> str | None:
    """Say what installs a module, where its name tells; None if it does not."""
    top = module.split(".")[0]
    if top == "imp":
        return (
            "Python 3.12 has no module imp: the package that imports it needs an older Python, or a newer release."
        )
    package = _PIP.get(module, _PIP.get(top, module if _OF_THE_SAME_NAME.fullmatch(module) else None))
    return None if package is None else f"python -m pip install {package}"
