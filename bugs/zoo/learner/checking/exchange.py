"""The files in which a check, the process of a learner's script and that of the exam leave word for each other."""

REPORT = "report.json"  # of `diagnose run`
FACTS = "facts.json"  # what the script really did
MODEL = "model.npz"  # the weights that were trained, and the digests of the rows
PRINTED = "printed.json"  # the metrics that the script has printed
RESULT = "exam.json"  # of the exam
