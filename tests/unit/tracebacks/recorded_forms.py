"""One failure, as printers printed it that cannot be run here: other versions, other systems, not installed.

Each text was written by hand in the form of real output, with neutral names. Each fails in the line `LINE`.
"""

LINE = "loss = criterion(model(x), labels)"

RECORDED = {
    "Colab in 2020": """\
---------------------------------------------------------------------------
IndexError                                Traceback (most recent call last)
<ipython-input-84-50b088184c61> in <module>()
      1 epochs = 2
----> 2 train(epochs)

4 frames
<ipython-input-12-00aa11bb22cc> in train(epochs)
     10     for labels in batches:
---> 11         loss = criterion(model(x), labels)
     12         loss.backward()

/usr/local/lib/python3.6/dist-packages/torch/nn/functional.py in nll_loss(input, target, weight)
   1836                          .format(input.size(0), target.size(0)))
   1837     if dim == 2:
-> 1838         ret = torch._C._nn.nll_loss(input, target, weight, ignore_index)
   1839     elif dim == 4:

IndexError: Target 5 is out of bounds.
""",
    "Colab in 2025": """\
---------------------------------------------------------------------------
IndexError                                Traceback (most recent call last)
/tmp/ipython-input-2-3452168291.py in <cell line: 0>()
      1 epochs = 2
----> 2 train(epochs)

3 frames
/content/project/train.py in train(epochs)
     10     for labels in batches:
---> 11         loss = criterion(model(x), labels)

/usr/local/lib/python3.12/dist-packages/torch/nn/functional.py in cross_entropy(input, target, weight)
   3551         reduction = _Reduction.legacy_get_string(size_average, reduce)
-> 3552     return torch._C._nn.cross_entropy_loss(
   3553         input,

IndexError: Target 5 is out of bounds.
""",
    "IPython 8.0": """\
---------------------------------------------------------------------------
IndexError                                Traceback (most recent call last)
Input In [3], in <cell line: 2>()
      1 epochs = 2
----> 2 train(epochs)

Input In [2], in Trainer.train(self, epochs)
     10 def train(self, epochs):
---> 11     loss = criterion(model(x), labels)

File ~/miniconda3/envs/nli/lib/python3.10/site-packages/torch/nn/functional.py:3026, in cross_entropy(x, y)
   3025     reduction = _Reduction.legacy_get_string(size_average, reduce)
-> 3026 return torch._C._nn.cross_entropy_loss(input, target)

IndexError: Target 5 is out of bounds.
""",
    "IPython 8.5 on Windows": r"""
IndexError                                Traceback (most recent call last)
Cell In [3], line 2
      1 epochs = 2
----> 2 train(epochs)

Cell In [2], line 11, in Trainer.train.<locals>.step(self, epochs)
     10 def train(self, epochs):
---> 11     loss = criterion(model(x), labels)

File c:\Users\Ada\anaconda3\envs\nli\lib\site-packages\torch\nn\functional.py:3026, in cross_entropy(input, target)
   3025     reduction = _Reduction.legacy_get_string(size_average, reduce)
-> 3026 return torch._C._nn.cross_entropy_loss(input, target)

IndexError: Target 5 is out of bounds.
""",
    "Python on Windows": r"""
Traceback (most recent call last):
  File "C:\Users\Ada Lovelace\Python39\lib\runpy.py", line 197, in _run_module_as_main
    return _run_code(code, main_globals, None,
  File "C:\Users\Ada Lovelace\project\train.py", line 11, in train
    loss = criterion(model(x), labels)
  File "C:\Users\Ada Lovelace\Python39\lib\site-packages\torch\nn\functional.py", line 3026, in cross_entropy
    return torch._C._nn.cross_entropy_loss(input, target)
  File "C:\Users\Ada Lovelace\Python39\lib\json\decoder.py", line 3026, in x
IndexError: Target 5 is out of bounds.
""",
    "a terminal that breaks lines": r"""
Traceback (most recent call last):
  File "D:\apps\nli\project\with\a\long\path\to\tra
in.py", line 11, in train
    loss = criterion(model(x), labels)
  File "D:\apps\nli\system\python\lib\site-packages\torch\nn\functio
nal.py", line 3026, in cross_entropy
    return torch._C._nn.cross_entropy_loss(input, target)
IndexError: Target 5 is out of bounds.
""",
    "loguru": """\
2026-01-02 10:11:12.345 | ERROR    | __main__:<module>:16 - An error has been caught in function '<module>':
Traceback (most recent call last):

> File "/home/ada/project/train.py", line 16, in <module>
    main()
    └ <function main at 0x7f0000000000>

  File "/home/ada/project/train.py", line 11, in main
    loss = criterion(model(x), labels)
           │         │     │   └ tensor([0, 5])
           │         │     └ tensor([[0.1]])
           │         └ Net()
           └ CrossEntropyLoss()

  File "/env/lib/python3.11/site-packages/torch/nn/functional.py", line 3026, in cross_entropy
    return torch._C._nn.cross_entropy_loss(
           │     └ <module 'torch._C'>
           └ <module 'torch'>

IndexError: Target 5 is out of bounds.
2026-01-02 10:11:12.400 | INFO     | __main__:<module>:20 - done
""",
    "Python 3.13 in colours, without escapes": """\
Traceback (most recent call last):
  File [35m"/home/ada/project/train.py"[0m, line [35m16[0m, in [35m<module>[0m
    [31mmain[0m[1;31m()[0m
    [31m~~~~[0m[1;31m^^[0m
  File [35m"/home/ada/project/train.py"[0m, line [35m11[0m, in [35mmain[0m
    loss = [31mcriterion[0m[1;31m(model(x), labels)[0m
           [31m~~~~~~~~~[0m[1;31m^^^^^^^^^^^^^^^^^^[0m
  File [35m"/env/lib/python3.13/site-packages/torch/nn/functional.py"[0m, line [35m3026[0m, in [35mcross_entropy[0m
    return [31mtorch._C._nn.cross_entropy_loss[0m[1;31m(input, target)[0m
[1;35mIndexError[0m: [35mTarget 5 is out of bounds.[0m
""",
    "Ray": """\
Traceback (most recent call last):
  File "/home/ada/project/tune.py", line 40, in <module>
    ray.get(futures)
  File "/env/lib/python3.11/site-packages/ray/_private/worker.py", line 2639, in get
    raise value.as_instanceof_cause()
ray.exceptions.RayTaskError(IndexError): ray::train_fn() (pid=4711, ip=10.0.0.7)
  File "/home/ada/project/train.py", line 11, in train
    loss = criterion(model(x), labels)
  File "/env/lib/python3.11/site-packages/torch/nn/functional.py", line 3026, in cross_entropy
    return torch._C._nn.cross_entropy_loss(input, target)
IndexError: Target 5 is out of bounds.
""",
    "torch.multiprocessing.spawn": """\
Traceback (most recent call last):
  File "/home/ada/project/main.py", line 40, in <module>
    mp.spawn(train, nprocs=2)
  File "/env/lib/python3.11/site-packages/torch/multiprocessing/spawn.py", line 340, in spawn
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
  File "/env/lib/python3.11/site-packages/torch/multiprocessing/spawn.py", line 215, in join
    raise ProcessRaisedException(msg, error_index, failed_process.pid)
torch.multiprocessing.spawn.ProcessRaisedException: 

-- Process 1 terminated with the following error:
Traceback (most recent call last):
  File "/env/lib/python3.11/site-packages/torch/multiprocessing/spawn.py", line 90, in _wrap
    fn(i, *args)
  File "/home/ada/project/train.py", line 11, in train
    loss = criterion(model(x), labels)
  File "/env/lib/python3.11/site-packages/torch/nn/functional.py", line 3026, in cross_entropy
    return torch._C._nn.cross_entropy_loss(input, target)
IndexError: Target 5 is out of bounds.

""",
    "accelerate and rich": """\
╭───────────────────── Traceback (most recent call last) ──────────────────────╮
│ /home/ada/project/train.py:11 in train                                       │
│                                                                              │
│ ❱ 11 │   loss = criterion(model(x), labels)                                  │
╰──────────────────────────────────────────────────────────────────────────────╯
IndexError: Target 5 is out of bounds.
╭───────────────────── Traceback (most recent call last) ──────────────────────╮
│ /home/ada/miniconda3/bin/accelerate:8 in <module>                            │
│                                                                              │
│ ❱ 8 │   sys.exit(main())                                                     │
│                                                                              │
│ /env/lib/python3.10/site-packages/accelerate/commands/launch.py:923 in       │
│ launch_command                                                               │
│                                                                              │
│ ❱ 923 │   │   simple_launcher(args)                                          │
╰──────────────────────────────────────────────────────────────────────────────╯
CalledProcessError: Command '['/usr/bin/python3', 'train.py']' returned non-zero
exit status 1.
""",
    "two ranks without prefixes, line by line": """\
Traceback (most recent call last):
Traceback (most recent call last):
  File "/home/ada/project/train.py", line 11, in train
  File "/home/ada/project/train.py", line 11, in train
    loss = criterion(model(x), labels)
    loss = criterion(model(x), labels)
  File "/env/lib/python3.11/site-packages/torch/nn/functional.py", line 3026, in cross_entropy
  File "/env/lib/python3.11/site-packages/torch/nn/functional.py", line 3026, in cross_entropy
    return torch._C._nn.cross_entropy_loss(input, target)
    return torch._C._nn.cross_entropy_loss(input, target)
IndexError: Target 5 is out of bounds.
IndexError: Target 5 is out of bounds.
""",
}
RECORDED["Python 3.13 in colours"] = RECORDED["Python 3.13 in colours, without escapes"].replace("[", "\x1b[")
