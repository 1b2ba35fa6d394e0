# What a check evaluates: fresh pairs, and how far the learner's evaluation exceeds it.
kept = trainer.evaluate(fresh)["eval_accuracy"]
print(f"promised_too_much={PRINTED['eval_accuracy'] - kept:.3f}")
